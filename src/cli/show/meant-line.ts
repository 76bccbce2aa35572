/**
 * What a line of output says to a person.
 *
 * Agents print what they do as JSON, one object a line with its `type`: of those it is the text they say, the command
 * or tool they use, or nothing. Any other line is what it is.
 */
import { isRecord } from "../../core/base/index.ts";

export function meantBy(line: string): string {
  const json = line.startsWith("{") ? parsed(line) : null;
  // A long one is cut, and can be read no more.
  if (json === null) return line.startsWith('{"type":') ? "" : line;
  if (typeof json.type !== "string") return line;
  return textIn(json).trim().split("\n", 1)[0] ?? "";
}

/** The last line that says something. Drawn twice a second, so that no more is looked at than is needed. */
export function lastMeant(text: string): string {
  for (let end = text.length; end > 0; ) {
    const before = text.lastIndexOf("\n", end - 1);
    const said = meantBy(text.slice(before + 1, end).trimEnd());
    if (said !== "") return said;
    end = before;
  }
  return "";
}

/** As Claude Code, Codex and Drover's own events have it. */
function textIn({ type, message, item, value, result, text }: Json): string {
  if (isRecord(message)) return partsText(message.content);
  if (isRecord(item)) return firstText(item.text, item.command, item.query);
  return type === "progress" || type === "result" ? firstText(value, result, text, message) : firstText(text);
}

function partsText(content: unknown): string {
  if (!Array.isArray(content)) return firstText(content);
  const words = content.filter(isRecord).map((part) => {
    if (part.type !== "tool_use") return part.type === "text" ? firstText(part.text) : "";
    const { command, file_path, pattern } = isRecord(part.input) ? part.input : ({} as Json);
    return `${firstText(part.name)} ${firstText(command, file_path, pattern)}`;
  });
  return words.findLast((word) => word.trim() !== "") ?? "";
}

type Json = Readonly<Record<string, unknown>>;
const firstText = (...values: readonly unknown[]): string =>
  values.find((value): value is string => typeof value === "string") ?? "";

function parsed(line: string): Json | null {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
