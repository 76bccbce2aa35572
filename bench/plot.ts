/**
 * `npx node bench/plot.ts REPORT.json > FILE.svg`: what `npm run bench -- NAME --json` has printed, as bars.
 *
 * Rates are drawn, each as long as it is beside the largest of its report; Drover's own in another colour than those of
 * its peers. The picture follows the colours of who looks at it, and says on which machine it was measured.
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

export function plotOf({ machine, reports }: Saved): string {
  const parts: string[] = [];
  let y = MARGIN;
  const say = (text: string, kind: string): void => {
    y += LINE;
    parts.push(`<text class="${kind}" x="${MARGIN}" y="${y - 8}">${escaped(text)}</text>`);
  };
  for (const { name, rows } of reports) {
    const rates = rows.filter(isRate);
    const most = Math.max(...rates.map(({ value }) => value));
    say(name, "head");
    for (const { what, value, unit } of rates) {
      const width = ((WIDTH - LABEL - FIGURE - MARGIN) * value) / most;
      const kind = what.startsWith("Drover") ? "ours" : "theirs";
      say(what, "label");
      parts.push(
        `<rect class="${kind}" x="${LABEL}" y="${y - 20}" width="${width.toFixed(1)}" height="${BAR}" rx="2"/>`,
        `<text x="${(LABEL + width + 6).toFixed(1)}" y="${y - 8}">${escaped(`${showNumber(value)} ${unit}`)}</text>`,
      );
    }
  }
  const { cpu, cores, node, platform } = machine;
  say(`${cores} cores of ${cpu}, Node ${node}, ${platform}`, "quiet");
  const height = y + MARGIN;
  const size = `width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"`;
  const title = `<title>${escaped(reports.map(({ name }) => name).join("; "))}</title>`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" ${size}>\n${title}\n<style>${STYLE}</style>`;
  return `${head}\n${parts.join("\n")}\n</svg>\n`;
}

const [, program, file] = process.argv;
if (program === import.meta.filename && file !== undefined)
  process.stdout.write(plotOf(JSON.parse(readFileSync(file, "utf8")) as Saved));
