/**
 * The rules in force: each value, its default, and what it means, in the words of the schema.
 */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, open } from "../data/ask.ts";
import { doing } from "../data/say.ts";
import { useCall } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { span } from "../data/words.ts";
import { asked } from "../parts/dialog.tsx";
import { Loaded, Panel, TableBox, View } from "../parts/pieces.tsx";

type Knob = { readonly description: string; readonly isSpan: boolean; readonly default: string | null };
type Shown = {
  readonly properties?: Readonly<Record<string, Shown>>;
  readonly description?: string;
  readonly anyOf?: readonly { readonly pattern?: string }[];
};

/** Every knob of a section by its path, from the OpenAPI document. */
function knobsIn(schema: Shown, path = ""): [string, Knob][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const at = path === "" ? name : `${path}.${name}`;
    if (field.properties !== undefined) return knobsIn(field, at);
    const isSpan = field.anyOf?.some(({ pattern }) => pattern?.includes("(ms|s|m|h|d)")) === true;
    // The default is the last sentence.
    const [, meaning = "", standard] = /^(.*?)(?: ?Default: (.*)\.)?$/s.exec(field.description ?? "") ?? [];
    return [[at, { description: meaning, isSpan, default: standard ?? null }] as [string, Knob]];
  });
}

async function readKnobs(): Promise<ReadonlyMap<string, Knob>> {
  const document = (await (await open("/openapi.json")).json()) as { components: { schemas: Record<string, Shown> } };
  return new Map(knobsIn(document.components.schemas.SchedulerConfig ?? {}));
}

const valueAt = (config: object, path: string): unknown =>
  path.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], config);

const inMs = (value: unknown): number => {
  const [, digits = "", unit = "ms"] = /^(\d+)(ms|s|m|h|d)$/.exec(String(value)) ?? [];
  return Number(digits) * ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit] ?? 1);
};
const words = (value: unknown, isSpan: boolean): string =>
  isSpan && typeof value === "number" ? span(value) : typeof value === "string" ? value : wide(JSON.stringify(value));
/** Lines may break behind a comma. */
const wide = (json: string): string => json.replaceAll(",", ", ").replaceAll(":", ": ");
const isSame = (value: unknown, { isSpan, default: standard }: Knob): boolean =>
  standard === null ||
  (isSpan ? value === inMs(standard) : standard === (typeof value === "string" ? value : JSON.stringify(value)));

export default function Config(): JSX.Element {
  const config = useCall("config", {}, { everyMs: 5000 });
  const { mayManage } = useRights();
  const [knobs, setKnobs] = useState<ReadonlyMap<string, Knob>>(new Map());
  useEffect(() => {
    void readKnobs().then(setKnobs, () => {});
  }, []);
  async function takeBack(): Promise<void> {
    const yes = await asked({
      title: "Take all patches back?",
      text: "What was changed while the server runs goes back to what its files say.",
      yes: "Take back",
      isDanger: true,
    });
    if (yes !== null) await doing(() => ask("patchConfig", { body: null }), "The files hold again.");
    config.again();
  }
  return (
    <View
      title="Config"
      actions={
        mayManage ? (
          <>
            <button
              type="button"
              class="button"
              onClick={() => doing(() => ask("reload", {}), "The config was read again.").then(config.again)}
            >
              Read the files again
            </button>
            <button type="button" class="button" onClick={takeBack}>
              Take patches back
            </button>
          </>
        ) : undefined
      }
    >
      <Panel title="scheduler" isFlush>
        <Loaded from={config}>
          {(values) => (
            <TableBox label="Rules">
              <table class="table">
                <thead>
                  <tr>
                    <th>Knob</th>
                    <th>In force</th>
                    <th>Default</th>
                    <th>Meaning</th>
                  </tr>
                </thead>
                <tbody>
                  {[...knobs].map(([path, knob]) => {
                    const value = valueAt(values, path);
                    const isDefault = isSame(value, knob);
                    return (
                      <tr key={path}>
                        <td class="mono nowrap">{path}</td>
                        <td class={isDefault ? "loose" : "loose changed"}>{words(value, knob.isSpan)}</td>
                        <td class="loose faint">{isDefault ? "same" : (knob.default ?? "")}</td>
                        <td class="muted">{knob.description}</td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </TableBox>
          )}
        </Loaded>
      </Panel>
    </View>
  );
}
