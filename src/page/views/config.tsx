/**
 * The config in force: each knob, its value, who set it, and what it means.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SettingView } from "../../protocol/generated/index.ts";
import { ask } from "../data/ask.ts";
import { doing } from "../data/say.ts";
import { useCall } from "../data/use-call.ts";
import { useRights } from "../data/who.ts";
import { count, wideJson } from "../data/words.ts";
import { asked } from "../parts/dialog.tsx";
import { Empty, Loaded, Panel, Segments, TableBox, View } from "../parts/pieces.tsx";

type Which = "all" | "set";
const CHOICES: readonly (readonly [Which, string])[] = [
  ["all", "Every knob"],
  ["set", "What somebody set"],
];

const words = (value: unknown): string =>
  Number.isInteger(value)
    ? count(value as number)
    : typeof value === "string"
      ? value
      : value === null
        ? "none"
        : wideJson(value);

const FROM: Readonly<Record<SettingView["origin"], string>> = {
  default: "default",
  file: "file",
  variable: "environment",
  flag: "flag",
  patch: "patched",
  leader: "leader",
};

const sectionOf = ({ path }: SettingView): string => path.split(".")[0] ?? path;

export default function Config(): JSX.Element {
  const config = useCall("settings", {}, { everyMs: 5000 });
  const [which, setWhich] = useState<Which>("all");
  const [text, setText] = useState("");
  const wanted = (setting: SettingView): boolean =>
    (which === "all" || setting.origin !== "default") &&
    [setting.path, words(setting.value), setting.where, setting.about].join(" ").toLowerCase().includes(text);
  return (
    <View title="Config" actions={<Acts patched={isPatched(config.data?.settings)} again={config.again} />}>
      <div class="actions">
        <Segments label="Which" choices={CHOICES} chosen={which} onChoose={setWhich} />
        <input
          class="input narrow"
          type="search"
          aria-label="Find a knob"
          placeholder="Find a knob"
          onInput={(event) => setText(event.currentTarget.value.trim().toLowerCase())}
        />
      </div>
      <Loaded from={config}>
        {({ settings, omitted }) => {
          const sections = [...Map.groupBy(settings.filter(wanted), sectionOf)];
          if (settings.length === 0)
            return <Empty>A program started this server and gave it its config: there is no file to tell of.</Empty>;
          if (sections.length === 0) return <Empty>No knob is like that.</Empty>;
          return (
            <>
              <Overruled knobs={settings.filter(({ own }) => own !== undefined)} />
              {sections.map(([section, knobs]) => (
                <Section key={section} name={section} knobs={knobs} />
              ))}
              {omitted === undefined ? null : <p class="muted">{count(omitted)} more are not listed.</p>}
            </>
          );
        }}
      </Loaded>
    </View>
  );
}

const isPatched = (settings: readonly SettingView[] | undefined): boolean =>
  settings?.some(({ origin }) => origin === "patch") ?? false;

/** What the files of a node say that does not hold, since another node leads. */
function Overruled({ knobs }: { knobs: readonly SettingView[] }): JSX.Element | null {
  if (knobs.length === 0) return null;
  return (
    <p class="muted" role="note">
      {knobs.length === 1 ? "One knob has" : `${count(knobs.length)} knobs have`} another value in the config of this
      node, which would hold if it led. Give all nodes the same config.
    </p>
  );
}

function Section({ name, knobs }: { name: string; knobs: readonly SettingView[] }): JSX.Element {
  return (
    <Panel title={name} isFlush>
      <TableBox label={name}>
        <table class="table config is-cards">
          <thead>
            <tr>
              <th>Knob</th>
              <th>In force</th>
              <th>Comes from</th>
              <th>Default</th>
              <th>Meaning</th>
            </tr>
          </thead>
          <tbody>
            {knobs.map((knob) => (
              <Row key={knob.path} knob={knob} />
            ))}
          </tbody>
        </table>
      </TableBox>
    </Panel>
  );
}

function Row({ knob }: { knob: SettingView }): JSX.Element {
  const { path, value, origin, where, own, about } = knob;
  const isSet = origin !== "default";
  return (
    <tr>
      <td class="mono knob">
        <bdi>{path}</bdi>
      </td>
      <td class={isSet ? "loose changed" : "loose"}>
        <bdi>{words(value)}</bdi>
        {own === undefined ? null : (
          <div class="faint">
            here <bdi>{words(own.value)}</bdi>, {own.where === undefined ? FROM[own.origin] : <bdi>{own.where}</bdi>}
          </div>
        )}
      </td>
      <td class="loose origin">
        <span class={isSet ? "" : "faint"}>{FROM[origin]}</span>
        {where === undefined ? null : <bdi class="mono faint">{where}</bdi>}
      </td>
      <td class="loose faint" data-is="Default">
        {isSet && knob.default !== undefined ? words(knob.default) : ""}
      </td>
      <td class="muted">{about}</td>
    </tr>
  );
}

function Acts({ patched, again }: { patched: boolean; again: () => void }): JSX.Element | null {
  const { mayManage } = useRights();
  async function takeBack(): Promise<void> {
    const yes = await asked({
      title: "Take all patches back?",
      text: "What was changed while the server runs goes back to what its files say.",
      yes: "Take back",
      isDanger: true,
    });
    if (yes !== null) await doing(() => ask("patchConfig", { body: null }), "The files hold again.");
    again();
  }
  if (!mayManage) return null;
  return (
    <>
      <button
        type="button"
        class="button"
        onClick={() => doing(() => ask("reload", {}), "The config was read again.").then(again)}
      >
        Read the files again
      </button>
      <button type="button" class="button" disabled={!patched} onClick={takeBack}>
        Take patches back
      </button>
    </>
  );
}
