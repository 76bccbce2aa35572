/**
 * `npx node bench/plot.ts REPORT.json … > FILE.svg`: what runs of `npm run bench -- NAME --json` have printed, as bars.
 *
 * Rates are drawn, each as long as it is beside the largest of all; Drover's own in another colour than those of its
 * peers. The picture follows the colours of who looks at it, and says below each run on which machine it was measured.
 */
import { readFileSync } from "node:fs";
import { type Machine, type Report, type Row, showNumber } from "./report.ts";

type Saved = { readonly machine: Machine; readonly reports: readonly Report[] };

const WIDTH = 760;
const LABEL = 330;
const LINE = 24;
const BAR = 15;
/** Room for the figure behind the longest bar. */
const FIGURE = 110;
const MARGIN = 12;

const STYLE = `text{font:12px system-ui,sans-serif;fill:#1f2328}.head{font-weight:600}.quiet{fill:#59636e}
.ours{fill:#0969da}.theirs{fill:#8c959f}@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.quiet{fill:#9198a1}
.ours{fill:#4493f8}.theirs{fill:#656c76}}`;

const isRate = ({ unit, value }: Row): boolean => unit.endsWith("/s") && value > 0;
const escaped = (text: string): string => text.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);

function plotOf(runs: readonly Saved[]): string {
  const parts: string[] = [];
  let y = MARGIN;
  const say = (text: string, kind: string): void => {
    y += LINE;
    parts.push(`<text class="${kind}" x="${MARGIN}" y="${y - 8}">${escaped(text)}</text>`);
  };
  const all = runs.flatMap(({ reports }) => reports);
  const names = [...new Set(all.map(({ name }) => name))].join("; ");
  const most = Math.max(...all.flatMap(({ rows }) => rows.filter(isRate).map(({ value }) => value)));
  say(names, "head");
  for (const { machine, reports } of runs) {
    for (const { what, value, unit } of reports.flatMap(({ rows }) => rows.filter(isRate))) {
      const width = ((WIDTH - LABEL - FIGURE - MARGIN) * value) / most;
      const kind = what.startsWith("Drover") ? "ours" : "theirs";
      say(what, "label");
      parts.push(
        `<rect class="${kind}" x="${LABEL}" y="${y - 20}" width="${width.toFixed(1)}" height="${BAR}" rx="2"/>`,
        `<text x="${(LABEL + width + 6).toFixed(1)}" y="${y - 8}">${escaped(`${showNumber(value)} ${unit}`)}</text>`,
      );
    }
    const { cpu, cores, node, platform, fsyncMs } = machine;
    say(`${cores} cores of ${cpu}, Node ${node}, ${platform}, one fsync ${showNumber(fsyncMs)} ms`, "quiet");
  }
  const height = y + MARGIN;
  const size = `width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"`;
  const title = `<title>${escaped(names)}</title>`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size}>\n${title}\n<style>${STYLE}</style>`;
  return `${head}\n${parts.join("\n")}\n</svg>\n`;
}

const files = process.argv.slice(2);
process.stdout.write(plotOf(files.map((file) => JSON.parse(readFileSync(file, "utf8")) as Saved)));
