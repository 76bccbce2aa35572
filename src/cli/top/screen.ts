/**
 * The screen of `drover top`, by Ink: it draws what has changed, hears keys, and gives the terminal back as it was.
 *
 * A frame is a text of exactly the size of the terminal, so Ink has one thing to lay out. It is loaded by this file
 * alone, and this file by nothing but a `top` that a person looks at.
 */

import type { Key as InkKey } from "ink";
import type { FunctionComponent, ReactElement } from "react";
import type { Screen } from "../shell/terminal.ts";
import type { Key } from "./keys.ts";
import type { Size } from "./picture.ts";

export type OpenScreen = {
  readonly size: () => Size;
  readonly draw: (lines: readonly string[]) => void;
  /** Resolves when what was drawn last is written. */
  readonly drawn: () => Promise<void>;
  readonly close: () => Promise<void>;
};
type Listeners = {
  readonly onKey: (key: Key) => void;
  readonly onResize: () => void;
  readonly onInterrupt: () => void;
};

const ROWS_DEFAULT = 24;
const COLUMNS_DEFAULT = 80;
/** Keys are answered at once; more frames a second nobody sees. */
const FRAMES_A_SECOND = 20;

export async function openScreen({ stdin, stdout }: Screen, listeners: Listeners): Promise<OpenScreen> {
  // React looks at this once, when it is loaded; its other build checks at every frame what is right already.
  process.env.NODE_ENV ??= "production";
  const { createElement } = await import("react");
  const { render, Text, useInput } = await import("ink");
  const Frame: FunctionComponent<{ readonly text: string }> = ({ text }) => {
    useInput((input, key) => {
      if (key.ctrl && input === "c") listeners.onInterrupt();
      else for (const one of keysOf(input, key)) listeners.onKey(one);
    });
    return createElement(Text, null, text);
  };
  const frame = (text: string): ReactElement => createElement(Frame, { text });
  const shown = render(frame(""), {
    stdin,
    stdout,
    stderr: stdout,
    alternateScreen: true,
    interactive: true,
    incrementalRendering: true,
    exitOnCtrlC: false,
    patchConsole: false,
    maxFps: FRAMES_A_SECOND,
  });
  stdout.on("resize", listeners.onResize);
  return {
    size: () => ({ columns: stdout.columns || COLUMNS_DEFAULT, rows: stdout.rows || ROWS_DEFAULT }),
    draw: (lines) => shown.rerender(frame(lines.join("\n"))),
    drawn: () => shown.waitUntilRenderFlush(),
    async close() {
      stdout.off("resize", listeners.onResize);
      shown.unmount();
      await shown.waitUntilExit();
    },
  };
}

const NAMED: readonly (readonly [flag: keyof InkKey, name: NonNullable<Key["name"]>])[] = [
  ["upArrow", "up"],
  ["downArrow", "down"],
  ["pageUp", "pageUp"],
  ["pageDown", "pageDown"],
  ["return", "enter"],
  ["escape", "escape"],
  ["backspace", "erase"],
  ["delete", "erase"],
];

/** Of several keys that come as one. */
const IN_CHUNK: Readonly<Record<string, Key["name"]>> = {
  "\r": "enter",
  "\n": "enter",
  "\t": "tab",
  "\u007f": "erase",
  "\b": "erase",
};

/** Over a slow line, and when a text is pasted, several keys come as one. */
function keysOf(input: string, key: InkKey): Key[] {
  if (key.tab) return [{ text: "", name: key.shift ? "backTab" : "tab" }];
  const named = NAMED.find(([flag]) => key[flag] === true);
  if (named !== undefined) return [{ text: "", name: named[1] }];
  if (key.ctrl || key.meta) return [];
  return [...input.replaceAll("\r\n", "\r")].flatMap((text): Key[] => {
    const name = IN_CHUNK[text];
    if (name !== undefined) return [{ text: "", name }];
    return /\p{Cc}/u.test(text) ? [] : [{ text, name: null }];
  });
}
