/**
 * A frame of `drover top` as HTML, for a picture of it: the real frame of a real server, in the colours of a terminal.
 */

import { painter } from "../src/cli/shell/text.ts";
import { frameOf } from "../src/cli/top/frame.ts";
import { lookOnce } from "../src/cli/top/look.ts";
import { FIRST_VIEW } from "../src/cli/top/picture.ts";
import { createClient } from "../src/client/index.ts";

const SIZE = { columns: 150, rows: 40 };

/** What each colour of a terminal looks like, by day and by night. */
const COLOURS: Readonly<Record<"light" | "dark", Readonly<Record<string, string>>>> = {
  light: {
    ...{ back: "#ffffff", text: "#1a212b", 31: "#b42331", 32: "#1c7a3f" },
    ...{ 33: "#8f5a00", 36: "#0e6b84", 2: "#5d6775" },
  },
  dark: {
    ...{ back: "#12161c", text: "#e6eaf0", 31: "#ff7b86", 32: "#5fd38d" },
    ...{ 33: "#e5b567", 36: "#6fc3e0", 2: "#8b95a5" },
  },
};

export async function terminalPage(url: string, scheme: "light" | "dark"): Promise<string> {
  const client = createClient({ url });
  const wanted = { tab: "scheduler", rows: SIZE.rows, isWide: true, filter: "" } as const;
  const picture = await lookOnce(client, wanted, Date.now);
  const shown = "http://127.0.0.1:4747";
  const lines = frameOf({ picture, view: FIRST_VIEW, size: SIZE, now: picture.at, url: shown, paint: painter(true) });
  const { back, text } = COLOURS[scheme];
  const look = `margin:0;padding:14px 16px;display:inline-block;background:${back};color:${text}`;
  const type = "font:13px/15px 'DejaVu Sans Mono',monospace";
  const html = lines.map((line) => painted(line, scheme)).join("\n");
  return `<body style="margin:0"><pre style="${look};${type}">${html}</pre>`;
}

/** A line with the sequences of a terminal, as spans. */
function painted(line: string, scheme: "light" | "dark"): string {
  let open = 0;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what a terminal obeys
  const html = line.replaceAll(/\u001b\[(\d+)m|[&<>]/g, (found, code: string | undefined) => {
    if (code === undefined) return `&#${found.charCodeAt(0)};`;
    const style = code === "1" ? "font-weight:700" : `color:${COLOURS[scheme][code] ?? "inherit"}`;
    if (Number(code) >= 31 ? Number(code) < 39 : Number(code) < 3 && code !== "0") {
      open++;
      return `<span style="${style}">`;
    }
    return open-- > 0 ? "</span>" : "";
  });
  return html + "</span>".repeat(Math.max(0, open));
}
