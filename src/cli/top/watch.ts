/**
 * The life of a `top` on a screen: pictures come, keys are pressed, and each makes a frame.
 */
import { type Client, ClientError } from "../../client/index.ts";
import { clientFor } from "../shell/connection.ts";
import { createOutput } from "../shell/output.ts";
import { EXIT, type ExitCode } from "../shell/problem.ts";
import type { Screen } from "../shell/terminal.ts";
import { plainLines, wrapLine } from "../shell/text.ts";
import type { Call } from "../shell/verb.ts";
import { byName, namesAround, type TaskNames, whyByName } from "../show/plan-names.ts";
import { whyPicture } from "../verbs/why.ts";
import { frameOf, panelRows, WIDE } from "./frame.ts";
import { type Key, press } from "./keys.ts";
import { keepLooking, LOOK_MS, type LookParts, lookOnce, type Wanted } from "./look.ts";
import { type Action, FIRST_VIEW, type Panel, type Picture, type Question, type Size, type View } from "./picture.ts";
import { openScreen } from "./screen.ts";

type Parts = Pick<LookParts, "rest" | "signal">;

/** Times are shown to the tenth of a second; once a second is enough to see them run. */
const DRAW_MS = 1000;
/** While pictures come once a second they are all that is drawn. */
const AFTER_PICTURE_MS = 1500;
const SOON_MS = 100;
const LOG_LINES = 200;

export async function watch(call: Call<unknown>, screen: Screen, { rest, signal: outer }: Parts): Promise<ExitCode> {
  const { terminal } = call;
  const { now } = terminal;
  const client = clientFor(call, { isQuiet: true });
  const over = new AbortController();
  const signal = AbortSignal.any([outer, over.signal]);
  let exit: ExitCode = EXIT.ok;
  let view: View = FIRST_VIEW;
  // What is not there at the beginning is said on the terminal as it is, and not on a screen that goes away.
  const first = { tab: view.tab, rows: 1, isWide: false, filter: "" };
  let picture: Picture = await lookOnce(client, first, now, { signal });

  const wanted = (): Wanted => {
    const { rows, columns } = shown.size();
    return { tab: view.tab, rows, isWide: columns >= WIDE, filter: view.filter };
  };
  let dueAt = 0;
  const draw = (restMs = DRAW_MS): void => {
    dueAt = now() + restMs;
    const { paint } = call.output;
    shown.draw(frameOf({ picture, view, size: shown.size(), now: now(), url: client.url, paint }));
  };
  const onKey = (key: Key): void => {
    const before = view;
    const pressed = press(view, key, { picture, size: shown.size(), now: now() });
    view = pressed.view;
    if (pressed.isOver) return over.abort();
    if (view.tab !== before.tab || (view.tab === "tasks" && view.filter !== before.filter)) void looking.poke();
    draw();
    if (pressed.action !== null) void act(pressed.action);
  };
  async function act(action: Action): Promise<void> {
    const change = await doneFor(client, action, call, shown.size());
    if (signal.aborted) return;
    // What was done is said with what it has changed.
    if (change.said?.isBad === false) await Promise.race([looking.poke(), stopped]);
    show(change);
  }
  /** A text is placed where the one before it was, if it answers the same. */
  function show({ panel, ...change }: Partial<View>, before: Panel | null = null): void {
    view = { ...view, ...change };
    const rows = panelRows({ picture, view, now: now(), size: shown.size() });
    if (panel) view = { ...view, panel: placed(panel, before, rows) };
    draw();
  }
  /** What lies over the tab is asked again with each picture, and never while an answer is out. */
  let isAsking = false;
  async function follow(): Promise<void> {
    const question = view.panel?.of ?? null;
    if (question === null || isAsking || picture.lost !== null) return;
    isAsking = true;
    try {
      const change = await doneFor(client, question, call, shown.size(), { signal, maxAgeMs: LOOK_MS });
      if (!signal.aborted && view.panel?.of === question) show(change, view.panel);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      isAsking = false;
    }
  }
  const onInterrupt = (): void => {
    exit = EXIT.interrupted;
    over.abort();
  };
  const shown = await openScreen(screen, { onKey, onResize: () => draw(), onInterrupt });
  const looking = keepLooking(picture, {
    client,
    now,
    rest,
    wanted,
    signal,
    onPicture: (next) => {
      // What could not be done while it was gone is no news any more.
      if (picture.lost !== null && next.lost === null) view = { ...view, said: picture.lost.isRefusal ? null : BACK };
      picture = next;
      draw(AFTER_PICTURE_MS);
      void follow();
    },
  });
  const stopped = looking.ended.catch(() => over.abort());
  try {
    draw();
    while (!signal.aborted) {
      await rest(Math.max(SOON_MS, dueAt - now()), signal);
      if (!signal.aborted && now() >= dueAt) draw();
    }
    await looking.ended;
  } finally {
    over.abort();
    await shown.close();
  }
  return exit;
}

const BACK: View["said"] = { text: "The server is back.", isBad: false };

type Until = { readonly signal?: AbortSignal; readonly maxAgeMs?: number };
/** A plan is asked for the names of its tasks once, and not again while a text is looked at. */
const namesBehind = new WeakMap<Question, TaskNames>();

/** What was asked for, and what is shown of it. */
async function doneFor(
  client: Client,
  action: Action,
  call: Call<unknown>,
  { columns }: Size,
  until: Until = {},
): Promise<Partial<View>> {
  try {
    switch (action.kind) {
      case "why": {
        const answer = await client.why(action.task, { retries: 0, ...until });
        const output = createOutput({ ...call.terminal, width: columns - 4 }, { color: call.flags.color ?? true });
        const names = namesBehind.get(action) ?? (await namesAround(client, action.task));
        namesBehind.set(action, names);
        const text = whyPicture(whyByName(answer, names), output, "");
        return { panel: panelOf(action, `Why ${byName(action.task, names)}`, text) };
      }
      case "log": {
        const { text } = await client.logs(action.task, { tail: LOG_LINES, retries: 0, ...until });
        const lines = plainLines(text).replaceAll("\t", "  ").trimEnd().split("\n");
        const shown = lines.flatMap((line) => wrapLine(line, columns - 4));
        return { panel: panelOf(action, `Log ${action.task}`, shown.join("\n") || "It has written nothing yet.") };
      }
      case "cancel":
        await client.cancel(action.task, { retries: 0 });
        return { said: { text: `${action.task} is cancelled`, isBad: false } };
      case "retry":
        await client.retry(action.task, { retries: 0 });
        return { said: { text: `${action.task} is queued again`, isBad: false } };
      case "pause":
      case "resume": {
        const { status } = await client[action.kind](action.project === null ? {} : { project: action.project });
        const what = action.project === null ? "The fleet" : `Project ${action.project}`;
        return { said: { text: status === "paused" ? `${what} is paused` : `${what} goes on`, isBad: false } };
      }
      default:
        return action satisfies never;
    }
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    return { said: { text: error.message, isBad: true } };
  }
}

const panelOf = (of: Question, title: string, text: string): Panel => {
  const lines = text.trimEnd().split("\n");
  return { title, lines, top: 0, of };
};

/** Where it was scrolled to, as far as that is there. Of a log its end is what a person looks for, and stays at. */
function placed(next: Panel, before: Panel | null, rows: number): Panel {
  const last = Math.max(0, next.lines.length - rows);
  const isAtEnd = before === null || before.top + rows >= before.lines.length;
  return { ...next, top: next.of?.kind === "log" && isAtEnd ? last : Math.min(before?.top ?? 0, last) };
}
