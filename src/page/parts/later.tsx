/**
 * Parts that are loaded when they are first shown, so that the first view comes sooner.
 */
import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

export function later<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Later(props: Props): JSX.Element {
    const [Part, setPart] = useState(() => loaded);
    useEffect(() => {
      if (loaded !== null) return;
      void load().then((module) => {
        loaded = module.default;
        setPart(() => loaded);
      });
    }, []);
    return Part === null ? <div class="loading">Loading…</div> : <Part {...props} />;
  };
}
