/**
 * docs/reference/metrics.md, written from the metrics themselves.
 *
 *     npx node tools/metrics-reference.ts        writes the file
 *
 * Those of Node and of its process are the library's own, and are not listed. A test compares.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openDrover } from "../src/engine/index.ts";
import { createMetrics } from "../src/server/observe/metrics.ts";

export const METRICS_FILE = "docs/reference/metrics.md";
const ABOUT = `# Metrics

What \`GET /metrics\` answers, for Prometheus; [which to watch](../operate/running.md#watching). Beside these it has
those of the process and of Node (\`process_…\`, \`nodejs_…\`). Written by \`tools/metrics-reference.ts\`.

| name | type | meaning |
| --- | --- | --- |
`;

export async function metricsReference(): Promise<string> {
  await using drover = await openDrover();
  const none = (): number => 0;
  const node = {
    life: () => ({ leads: () => true }) as never,
    applied: () => ({ epoch: 0 }) as never,
    ageMs: none,
    readOnly: () => null,
  };
  const text = await createMetrics({ drover, node, webhooksDue: none, streams: none, polls: none }).text();
  const heads = text.matchAll(/^# HELP (drover_\w+) (.*)\n# TYPE \w+ (\w+)$/gm);
  const rows = [...heads].map(([, name, help, type]) => `| \`${name}\` | ${type} | ${help} |\n`);
  return `${ABOUT}${rows.sort().join("")}`;
}

if (import.meta.main) writeFileSync(join(import.meta.dirname, "..", METRICS_FILE), await metricsReference());
