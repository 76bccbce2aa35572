/**
 * A server that says what a test tells it to say, so that a verb's words can be compared letter by letter.
 *
 * It is a `fetch` and no socket: answers are looked up by method and path, and what was asked is kept. That the real
 * server takes the same requests is shown by the end-to-end tests.
 */

import { runCommandLine } from "../../../src/cli/command-line.ts";
import { VERBS } from "../../../src/cli/verbs.ts";
import { type TestTerminalOptions, testTerminal } from "./test-terminal.ts";

export type Asked = { readonly call: string; readonly body: unknown };
export type Canned = {
  readonly fetch: typeof globalThis.fetch;
  readonly asked: Asked[];
};

type Answer = unknown | ((asked: Asked) => unknown);

export class Refusal {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, error: string, details?: Readonly<Record<string, unknown>>) {
    this.status = status;
    this.body = { error, code, ...(details === undefined ? {} : { details }) };
  }
}

/** Answers by call, such as `GET /tasks`; the query is part of what was asked, and of the key if the key has one. */
export function cannedServer(answers: Readonly<Record<string, Answer>>): Canned {
  const asked: Asked[] = [];
  const fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const { pathname, search } = new URL(String(input));
    const call = `${init.method ?? "GET"} ${pathname}`;
    const one: Asked = {
      call: `${call}${search}`,
      body: init.body === undefined || init.body === null ? undefined : JSON.parse(String(init.body)),
    };
    asked.push(one);
    const key = [`${call}${search}`, call].find((name) => Object.hasOwn(answers, name));
    const answer = key === undefined ? new Refusal(404, "not_found", `no answer to ${call}`) : answers[key];
    const said = typeof answer === "function" ? await (answer as (one: Asked) => unknown)(one) : answer;
    const headers = { "content-type": "application/json", "drover-protocol": "1" };
    if (said instanceof Refusal) return new Response(JSON.stringify(said.body), { status: said.status, headers });
    return new Response(JSON.stringify(said), { status: 200, headers });
  };
  return { fetch: fetch as typeof globalThis.fetch, asked };
}

export const NOW: number = Date.parse("2026-01-31T12:00:00Z");
export type Ran = {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly asked: readonly Asked[];
};

/** A command line before such a server. */
export async function drover(
  args: readonly string[],
  answers: Readonly<Record<string, unknown>> = {},
  options: TestTerminalOptions = {},
): Promise<Ran> {
  const { fetch, asked } = cannedServer(answers);
  const terminal = testTerminal({ env: { USER: "ann" }, now: () => NOW, fetch, ...options });
  const code = await runCommandLine(args, terminal, VERBS);
  return { code, out: terminal.shown(), err: terminal.complained(), asked };
}
