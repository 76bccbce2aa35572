/**
 * `drover events`: the log as it is, and with --follow as it grows. With --json one event a line.
 */

import type { Client } from "../../client/index.ts";
import type { EventJson } from "../../protocol/index.ts";
import { EVENTS_MAX } from "../../protocol/wire/index.ts";
import { clientFor } from "../shell/connection.ts";
import { EXIT, type ExitCode } from "../shell/problem.ts";
import { interruptible } from "../shell/terminal.ts";
import { type Call, type VerbBody, wholeNumber } from "../shell/verb.ts";
import { eventLine } from "../show/event-view.ts";

type Flags = { readonly after?: number; readonly follow?: boolean; readonly limit?: number };

export const eventsVerb: VerbBody<Flags> = {
  flags: [
    { flags: "--after <seq>", about: "events behind this number (default: from the beginning)", read: wholeNumber(0) },
    { flags: "-f, --follow", about: "go on with those to come, until Ctrl-C" },
    { flags: "-n, --limit <n>", about: "at most so many", read: wholeNumber(1) },
  ],
  examples: [
    ["drover events --follow", "everything there was, then everything there will be"],
    ["drover events --after 4711 --limit 20", "the twenty events behind 4711"],
    ["drover events --follow --json | jq 'select(.kind == \"task-failed\")'", "one JSON object a line, for programs"],
  ],
  run: (call) => (call.flags.follow === true ? follow(call) : past(call)),
};

async function past(call: Call<Flags>): Promise<ExitCode> {
  const { after = 0, limit = Number.POSITIVE_INFINITY } = call.flags;
  for await (const event of pages(clientFor(call), after, limit)) print(event, call);
  return EXIT.ok;
}

/** What there is now, page by page. A pruned log begins later than asked. */
async function* pages(client: Client, after: number, limit: number): AsyncGenerator<EventJson> {
  let from: number | undefined = after;
  let left = limit;
  while (from !== undefined && left > 0) {
    const page = await client.eventPage({ after: from, limit: Math.min(left, EVENTS_MAX) });
    yield* page.events;
    left -= page.events.length;
    from = page.events.length === 0 ? undefined : page.nextAfter;
  }
}

function follow(call: Call<Flags>): Promise<ExitCode> {
  const { after = 0, limit = Number.POSITIVE_INFINITY } = call.flags;
  const client = clientFor(call);
  return interruptible(call.terminal, async (signal) => {
    let count = 0;
    for await (const event of client.events({ after, signal })) {
      print(event, call);
      count += 1;
      if (count >= limit) break;
    }
    return EXIT.ok;
  });
}

const print = (event: EventJson, { output }: Call<Flags>): void => output.line(event, () => eventLine(event, output));
