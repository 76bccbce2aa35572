/**
 * Parts that are loaded when they are first shown, so that the first view comes sooner. When one could not be loaded
 * and the server is found again, the whole page is loaded anew: a browser remembers of a script that it was not there.
 */
import type { ComponentType, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { live } from "../data/live.ts";
import { useStore } from "../data/store.ts";

export function later<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  return function Later(props: Props): JSX.Element {
    const [Part, setPart] = useState(() => loaded);
    const [isFailed, setFailed] = useState(false);
    const { found } = useStore(live);
    const begun = useRef(found);
    useEffect(() => {
      if (loaded !== null) return;
      load().then(
        (module) => {
          loaded = module.default;
          setPart(() => loaded);
        },
        () => setFailed(true),
      );
    }, []);
    useEffect(() => {
      if (isFailed && found > begun.current) location.reload();
    }, [isFailed, found]);
    if (Part !== null) return <Part {...props} />;
    return isFailed ? <NotLoaded /> : <div class="loading">Loading…</div>;
  };
}

function NotLoaded(): JSX.Element {
  return (
    <div class="empty" role="alert">
      <p>This could not be loaded: the server is away, or has another version than this page.</p>
      <button type="button" class="button" onClick={() => location.reload()}>
        Reload the page
      </button>
    </div>
  );
}
