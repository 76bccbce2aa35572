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
import { whyPicture } from "../verbs/why.ts";
import { frameOf } from "./frame.ts";
import { type Key, press } from "./keys.ts";
import { keepLooking, type LookParts, lookOnce, type Wanted } from "./look.ts";
import { type Action, FIRST_VIEW, type Panel, type Picture, type Size, type View } from "./picture.ts";
import { openScreen } from "./screen.ts";

type Parts = Pick<LookParts, "rest" | "signal">;

/** Times are shown to the tenth of a second; once a second is enough to see them run. */
const DRAW_MS = 1000;
/** While pictures come once a second they are all that is drawn. */
const AFTER_PICTURE_MS = 1500;
const SOON_MS = 100;
const LOG_LINES = 200;
/** The bar, the keys and the edges of a box. */
const AROUND = 4;
const WIDE = 120;

export async function watch(call: Call<unknown>, screen: Screen, { rest, signal: outer }: Parts): Promise<ExitCode> {
  const { terminal } = call;
  const { now } = terminal;
  const client = clientFor(call);
  const over = new AbortController();
  const signal = AbortSignal.any([outer, over.signal]);
  let exit: ExitCode = EXIT.ok;
  let view: View = FIRST_VIEW;
  // What is not there at the beginning is said on the terminal as it is, and not on a screen that goes away.
  let picture: Picture = await lookOnce(client, { tab: view.tab, rows: 1, isWide: false, filter: "" }, now);

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
    if (view.tab !== before.tab || (view.tab === "tasks" && view.filter !== before.filter)) looking.poke();
    draw();
    if (pressed.action !== null) void act(pressed.action);
  };
  async function act(action: Action): Promise<void> {
    const change = await doneFor(client, action, call, shown.size());
    if (signal.aborted) return;
    view = { ...view, ...change };
    looking.poke();
    draw();
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
      picture = next;
      draw(AFTER_PICTURE_MS);
    },
  });
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

/** What was asked for, and what is shown of it. */
async function doneFor(client: Client, action: Action, call: Call<unknown>, size: Size): Promise<Partial<View>> {
  const { columns, rows } = size;
  try {
    switch (action.kind) {
      case "why": {
        const answer = await client.why(action.task, { retries: 0 });
        const output = createOutput({ ...call.terminal, width: columns - 4 }, { color: call.flags.color ?? true });
        return { panel: panelOf(`Why ${action.task}`, whyPicture(answer, output, "")) };
      }
      case "log": {
        const { text } = await client.logs(action.task, { tail: LOG_LINES, retries: 0 });
        const lines = plainLines(text).replaceAll("\t", "  ").trimEnd().split("\n");
        const shown = lines.flatMap((line) => wrapLine(line, columns - 4));
        const panel = panelOf(`Log ${action.task}`, shown.join("\n") || "It has written nothing yet.");
        // Its end is what a person looks for.
        return { panel: { ...panel, top: Math.max(0, shown.length - (rows - AROUND)) } };
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

const panelOf = (title: string, text: string): Panel => ({ title, lines: text.trimEnd().split("\n"), top: 0 });
