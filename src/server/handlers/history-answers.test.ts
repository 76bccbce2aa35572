/**
 * The past is written once per sample: whoever asks for the same part of it gets the same text.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Sample } from "../../protocol/index.ts";
import type { KeptSample } from "../observe/history.ts";
import { createHistoryAnswers } from "./history-answers.ts";

test("no sample is written again for those who ask for the same, and the text is that of now", () => {
  let written = 0;
  const keptAt = (at: number): KeptSample => ({
    at,
    sample: { at: new Date(at).toISOString() } as Sample,
    get text() {
      written++;
      return `{"at":${at}}`;
    },
    bare: `{"bare":${at}}`,
  });
  let kept = [0, 10_000, 20_000, 30_000].map(keptAt);
  const drover = { logTime: () => ({ at: 30_000 }) } as Parameters<typeof createHistoryAnswers>[0];
  const answer = createHistoryAnswers(drover, { samples: () => kept });
  const admin = { role: "admin", projects: null, agentId: null } as Parameters<typeof answer>[1];
  const since = (ms: number): string => new Date(ms).toISOString();
  const all = answer({ from: since(0) }, admin);
  assert.equal(all, '{"step":10000,"samples":[{"at":0},{"at":10000},{"at":20000},{"at":30000}]}');
  for (let asked = 0; asked < 200; asked++) assert.equal(answer({ from: since(-asked) }, admin), all);
  assert.equal(written, 4);
  assert.equal(answer({ from: since(1), step: 20_000 }, admin), '{"step":20000,"samples":[{"at":10000},{"at":30000}]}');
  assert.equal(answer({ from: since(30_000), projects: false }, admin), '{"step":10000,"samples":[{"bare":30000}]}');
  kept = [...kept, keptAt(40_000)];
  assert.equal(answer({ from: since(30_000) }, admin), '{"step":10000,"samples":[{"at":30000},{"at":40000}]}');
  assert.equal(answer({ from: since(99_000) }, admin), '{"step":10000,"samples":[]}');
});
