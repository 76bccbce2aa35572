/**
 * One call of the wire, as data.
 *
 * Whatever concerns a call is said here once: where it is, who may make it, what it takes, what it answers. The server
 * builds its routes from it, the document is generated from it, the client's types come from it.
 */
import * as s from "../schema/schema.ts";
import { CODE_NAMES, type WireCode, type WireError } from "../wire/codes.ts";
import { type CallName, ENDPOINTS, type Endpoint, isRead } from "../wire/endpoints.ts";
import type { Role } from "../wire/role.ts";

export type Tag =
  | "bulk"
  | "tasks"
  | "groups"
  | "plans"
  | "files"
  | "scheduler"
  | "projects"
  | "workers"
  | "schedules"
  | "gates"
  | "events"
  | "server";

/** What a call takes. */
export type Ask = { readonly params?: object; readonly query?: object; readonly body?: unknown };
export type Id = { readonly id: string };

export type Call<Asked extends Ask = Ask, Answer = unknown> = Endpoint & {
  readonly operationId: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** Who may make it; null: anybody, without a token. */
  readonly roles: readonly Role[] | null;
  readonly params: s.Schema<Asked["params"]> | null;
  readonly query: s.Schema<Asked["query"]> | null;
  readonly body: s.Schema<Asked["body"]> | null;
  /** Whether a request without a body is refused; where it is not, absent means `{}`. */
  readonly needsBody: boolean;
  /** The schema of each answer that is not an error. */
  readonly answers: Readonly<Record<number, s.Schema<Answer>>>;
  /** What it can refuse beside what every call can. */
  readonly errors: readonly WireCode[];
};

type Given<Asked extends Ask, Answer> = Pick<Call<Asked, Answer>, "summary" | "roles" | "answers"> &
  Partial<Omit<Call<Asked, Answer>, keyof Endpoint | "operationId" | "tag">>;

const UNSAID = { params: null, query: null, body: null, needsBody: false, errors: [] };

/** The calls of a tag, each with its endpoint, and with what is not said filled in. */
export function callsOf<Group>(
  tag: Tag,
  given: { readonly [Name in keyof Group & CallName]: Given<AskOf<Group[Name]>, AnswerOf<Group[Name]>> },
): Group {
  const calls = Object.entries(given).map(([operationId, said]) => [
    operationId,
    { ...ENDPOINTS[operationId as CallName], ...UNSAID, ...(said as object), operationId, tag },
  ]);
  return Object.fromEntries(calls) as Group;
}

/** Every code a call may answer: its own, and those that come with what it takes and who may make it. */
export function errorsOf({ operationId, roles, params, query, body, errors }: Call): readonly WireCode[] {
  const looks = isRead(operationId as CallName);
  const takes = params !== null || query !== null || body !== null || (looks && roles !== null);
  const all: readonly WireCode[] = [
    ...(takes ? (["bad_request"] as const) : []),
    "unsupported_protocol",
    ...(roles === null ? [] : (["unauthorized"] as const)),
    "forbidden",
    ...(body === null ? [] : (["too_large", "unsupported_media_type"] as const)),
    ...errors,
    ...(["internal", "overloaded", "closed"] as const),
    // Of a node: only the leader changes something, and a read may ask for more than this one has.
    ...(roles === null ? [] : looks ? (["behind"] as const) : (["no_leader"] as const)),
  ];
  return [...new Set(all)];
}

export type AskOf<Kind> = Kind extends Call<infer Asked, unknown> ? Asked : never;
export type AnswerOf<Kind> = Kind extends Call<infer _Asked, infer Answer> ? Answer : never;

/** The body of every answer that is an error. */
export const wireErrorSchema: s.Schema<WireError> = s.namedAnswer("Error", {
  error: s.described(s.text(1, 10_000), "What is wrong and what would be right, for people."),
  code: s.described(s.oneOf(...CODE_NAMES), "What is wrong, for programs."),
  retryable: s.optional(s.flag(), "Whether the very same request may succeed later."),
  details: s.optional(s.anyObject(), "The facts, such as field, value and expected."),
});
