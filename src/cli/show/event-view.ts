/**
 * An event as one line: its number, when it was, what happened, to what, and the facts that are short enough to show.
 *
 * Nothing here knows a single kind of event, so that one that is added tomorrow is shown as well as any.
 */
import type { EventJson } from "../../protocol/index.ts";
import type { Output } from "../shell/output.ts";
import { clip, padEnd, plain, type Tint } from "../shell/text.ts";

const VALUE_MAX = 60;
/** What stands in its own column, or says nothing to a person. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "kind",
  "at",
  "task",
  "attempt",
  "bodyHash",
  "resultHash",
  "policyHash",
]);

export function eventLine(event: EventJson, output: Output): string {
  const { paint } = output;
  const facts = Object.entries(event.payload)
    .filter(([key, value]) => !LEFT_OUT.has(key) && isWorthShowing(value))
    .map(([key, value]) => `${key}=${clip(plain(shortly(value)), VALUE_MAX)}`);
  const what = [
    event.task ?? "",
    event.attempt === undefined || event.attempt === 0 ? "" : `attempt ${event.attempt}`,
    facts.join(" "),
  ].filter((part) => part !== "");
  const head = `${padEnd(`#${event.seq}`, 8)} ${event.at.replace("T", " ").replace("Z", "")}`;
  const line = `${head}  ${padEnd(event.kind, 18)} ${plain(what.join("  "))}`.trimEnd();
  const shown = output.width === null ? line : clip(line, output.width);
  const rest = shown.slice(head.length);
  const tint = tintOf(event.kind);
  return `${paint("dim", head)}${tint === null ? rest : paint(tint, rest)}`;
}

const isWorthShowing = (value: unknown): boolean =>
  value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0);

const shortly = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function tintOf(kind: string): Tint | null {
  if (/-(done|opened|joined)$/.test(kind)) return "green";
  if (/-(failed|lost|throttled|expired)$/.test(kind)) return "red";
  if (/-(cancelled|skipped|paused|left)$/.test(kind)) return "yellow";
  return /-(assigned|running|started)$/.test(kind) ? "cyan" : null;
}
