/**
 * What a benchmark says, and how it is shown.
 *
 * A benchmark returns rows; this file turns them into an aligned table for people or one JSON document for machines.
 * The machine's shape goes with every report, because a figure without its machine means nothing. Progress
 * goes to stderr, so that stdout holds the result and nothing else.
 */

import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { availableParallelism, cpus, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { createProgress, type Progress } from "../src/std/index.ts";

export type Options = {
  readonly json: boolean;
  readonly quick: boolean;
  /** Of a benchmark in parts, these alone. */
  readonly only?: readonly string[];
  /** How long the part lasts that goes on without a rest. */
  readonly seconds?: number;
  readonly rounds?: number;
};
export type Row = {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly target?: string;
  readonly met?: boolean;
  readonly note?: string;
};
export type Report = { readonly name: string; readonly rows: Row[] };
export type Machine = {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly node: string;
  readonly platform: string;
  /** What making 4 KiB durable takes here and now, the median: every durable figure hangs on it. */
  readonly fsyncMs: number;
};

const FSYNC_SAMPLES = 51;

export function describeMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: availableParallelism(),
    memoryGiB: Math.round((totalmem() / 2 ** 30) * 10) / 10,
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    fsyncMs: Math.round(medianFsyncMs() * 1000) / 1000,
  };
}

function medianFsyncMs(): number {
  const folder = mkdtempSync(join(tmpdir(), "drover-bench-fsync-"));
  const file = openSync(join(folder, "file"), "w");
  const page = Buffer.alloc(4096);
  const samples = Array.from({ length: FSYNC_SAMPLES }, () => {
    writeSync(file, page);
    const startedAt = performance.now();
    fdatasyncSync(file);
    return performance.now() - startedAt;
  });
  closeSync(file);
  rmSync(folder, { recursive: true });
  return samples.sort((a, b) => a - b)[FSYNC_SAMPLES >> 1] ?? 0;
}

export function toJson(reports: readonly Report[]): string {
  return JSON.stringify({ machine: describeMachine(), reports }, undefined, 2);
}

export function toText(reports: readonly Report[]): string {
  const { cpu, cores, memoryGiB, node, platform, fsyncMs } = describeMachine();
  const head = `${cpu}, ${cores} cores, ${memoryGiB} GiB, fsync ${fsyncMs} ms, Node ${node}, ${platform}`;
  return [head, ...reports.map(({ name, rows }) => `\n${name}\n${toTable(rows)}`)].join("\n");
}

/** Columns no row uses are left out; figures are aligned at their right edge. */
export function toTable(rows: readonly Row[]): string {
  const cells = rows.map(({ what, value, unit, target = "", met, note = "" }) => [
    what,
    showNumber(value),
    unit,
    target,
    met === undefined ? "" : met ? "met" : "NOT MET",
    note,
  ]);
  const table = [["what", "value", "unit", "target", "", "note"], ...cells];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => [...(row[column] ?? "")].length))) ?? [];
  const isUsed = widths.map((_, column) => cells.some((row) => row[column] !== ""));
  return table
    .map((row) =>
      row
        .map((cell, column) => (column === 1 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
        .filter((_, column) => isUsed[column])
        .join("  ")
        .trimEnd(),
    )
    .map((line) => `  ${line}`)
    .join("\n");
}

/** Four significant digits are more than any of these figures is good for. */
export function showNumber(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  const digits = Math.max(0, 3 - Math.floor(Math.log10(Math.max(Math.abs(value), 1e-3))));
  const [whole = "", fraction] = value.toFixed(Math.min(digits, 6)).split(".");
  const grouped = whole.replaceAll(/\B(?=(\d{3})+$)/g, " ");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** A bar on a terminal; in a file a line every ten seconds. */
export const bar = (what: string, unit: string): Progress =>
  createProgress(what, unit, { stream: process.stderr, now: () => performance.now() });

export function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}
