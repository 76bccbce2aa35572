/**
 * The past as it is asked for: some of the samples, as one text.
 *
 * Twenty pages ask for the same samples every few seconds. So a text is kept until there is another sample, and is made
 * of the texts of its samples. Only for a token that may not see all projects is a sample written anew.
 */
import type { Drover } from "../../engine/index.ts";
import { isScoped } from "../../http/index.ts";
import { type HistoryQuery, SAMPLE_EVERY_MS, SAMPLES_MAX } from "../../protocol/index.ts";
import { ownProject } from "../access/scoped-views.ts";
import type { HistoryStore, KeptSample } from "../observe/history.ts";
import type { Exchange } from "./handler.ts";

const HOUR_MS = 3_600_000;
const TEXTS_MAX = 16;

type Caller = Exchange["caller"];

export function createHistoryAnswers(
  drover: Pick<Drover, "logTime" | "state">,
  history: Pick<HistoryStore, "samples">,
): (query: HistoryQuery, caller: Caller) => string {
  const texts = new Map<string, string>();
  let textsOf: readonly KeptSample[] = [];

  function textOf({ sample, text, bare }: KeptSample, projects: boolean, caller: Caller): string {
    if (!projects) return bare;
    if (!isScoped(caller)) return text;
    const own = sample.projects.filter(({ id }) => ownProject(drover.state, caller, id));
    return own.length === 0 ? bare : JSON.stringify({ ...sample, projects: own });
  }
  return ({ from, step = SAMPLE_EVERY_MS, projects = true }, caller) => {
    const kept = history.samples();
    if (kept !== textsOf || texts.size === TEXTS_MAX) texts.clear();
    textsOf = kept;
    const since = from === undefined ? drover.logTime().at - HOUR_MS : Date.parse(from);
    const start = kept.findIndex(({ at }) => at >= since);
    const first = start < 0 ? kept.length : start;
    const count = kept.length - first;
    const every = Math.max(Math.ceil(step / SAMPLE_EVERY_MS), Math.ceil(count / SAMPLES_MAX));
    const key = JSON.stringify([first, every, projects, caller.role, caller.projects, caller.agentId]);
    const known = texts.get(key);
    if (known !== undefined) return known;
    // Counted from the last one, which is always there.
    const wanted = kept.slice(first).filter((_, index) => (count - 1 - index) % every === 0);
    const samples = wanted.map((one) => textOf(one, projects, caller)).join(",");
    const made = `{"step":${every * SAMPLE_EVERY_MS},"samples":[${samples}]}`;
    texts.set(key, made);
    return made;
  };
}
