/**
 * The OpenAPI 3.1 document, generated from the table of calls.
 *
 * Nothing is written here that is not true of the server, because both come from the same table.
 */
import { type Call, errorsOf, wireErrorSchema } from "./calls/call.ts";
import { CALL_LIST } from "./calls/calls.ts";
import { type Published, published, publishedInFull, type RefTo } from "./schema/published.ts";
import type { Schema } from "./schema/schema.ts";
import { WIRE_CODES } from "./wire/codes.ts";
import {
  AFTER_HEADER,
  AGE_HEADER,
  BYTES,
  type CallName,
  isRead,
  LEADER_HEADER,
  LOOKS,
  PROTOCOL_HEADER,
  PROTOCOL_VERSION,
  SEQ_HEADER,
} from "./wire/endpoints.ts";

type OpenApiOptions = {
  /** The version of Drover. */
  readonly version: string;
  /** Where the server is, as its callers see it. */
  readonly url?: string;
};

const TAGS: Readonly<Record<Call["tag"], string>> = {
  tasks: "Units of work: submit, read, change, cancel, and ask why one is not running.",
  groups: "Tasks that were submitted together: how far they are, to wait for, cancel and run again.",
  plans: "Tasks that are put as one: run, paused, cancelled and run again as one.",
  files: "What tasks leave for those that need them, kept by content.",
  scheduler: "The whole: numbers, queues, rules, pauses.",
  projects: "Who pays: a weight, a token budget, a cap.",
  workers: "Who executes. One level-triggered sync carries assignments, results, leases and cancels.",
  schedules: "Recurring tasks: cron with a time zone.",
  gates: "Which LLM call may go out now: permits for provider accounts.",
  events: "The log itself, event by event, with its chain of hashes.",
  server: "Health, metrics, this document.",
  bulk: "Many calls in one request, for clients that make many at once.",
};
const DESCRIPTION = `Drover schedules fleets of AI agents: which task runs next, on which worker, and which LLM call may
go out now. It can always say why.

Errors are always \`{error, code, retryable?, details?}\`. Times are RFC 3339 text; what is unset is absent. An unknown
field is refused by name. Nothing is acknowledged before it is durable. Every answer carries the header
\`${PROTOCOL_HEADER}: ${PROTOCOL_VERSION}\`. A server on loopback needs no token unless some are configured.`;

const BINARY: Published = { type: "string", format: "binary" };
const REUSED = "#/components/schemas/";

export function openApiDocument({ version, url = "http://127.0.0.1:4747" }: OpenApiOptions): Published {
  const components = new Map<string, Schema>();
  const refTo: RefTo = (name, schema) => {
    if (!components.has(name)) components.set(name, schema);
    return `${REUSED}${name}`;
  };
  const paths: Record<string, Published> = {};
  for (const call of CALL_LIST) {
    paths[call.path] = { ...paths[call.path], [call.method.toLowerCase()]: operationOf(call, refTo) };
  }
  return {
    openapi: "3.1.0",
    info: { title: "Drover", version, summary: "A scheduler for fleets of AI agents", description: DESCRIPTION },
    servers: [{ url }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ bearer: [] }, {}],
    paths,
    components: {
      schemas: shownComponents(components, refTo),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "A token of server.tokens; each has a role." },
      },
    },
  };
}

/** Showing one may meet others that are not in the map yet; a Map is walked to its end even while it grows. */
function shownComponents(components: ReadonlyMap<string, Schema>, refTo: RefTo): Published {
  const shown: [string, Published][] = [];
  for (const [name, schema] of components) shown.push([name, publishedInFull(schema, refTo)]);
  return Object.fromEntries(shown.sort(([left], [right]) => (left < right ? -1 : 1)));
}

function operationOf(call: Call, refTo: RefTo): Published {
  const { operationId, tag, summary, description, roles, body, needsBody } = call;
  const allowed = roles === null ? "Needs no token." : `Roles: ${roles.join(", ")}.`;
  const parameters = [
    ...parametersOf(call.params, "path", refTo),
    ...parametersOf(call.query, "query", refTo),
    ...(roles !== null && isRead(operationId as CallName) ? [afterParameter] : []),
    ...(LOOKS.has(operationId as CallName) ? [ageParameter] : []),
  ];
  return {
    operationId,
    tags: [tag],
    summary,
    description: description === undefined ? allowed : `${description}\n\n${allowed}`,
    ...(roles === null ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(call.consumes === undefined
      ? {}
      : { requestBody: { required: true, content: { [call.consumes]: { schema: BINARY } } } }),
    ...(body === null
      ? {}
      : { requestBody: { required: needsBody, content: { "application/json": { schema: published(body, refTo) } } } }),
    responses: { ...answersOf(call, refTo), ...refusalsOf(call, refTo) },
  };
}

function parametersOf(schema: Schema | null, from: "path" | "query", refTo: RefTo): Published[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Readonly<Record<string, Schema>>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...shown } = published(property, refTo);
    return {
      name,
      in: from,
      required: from === "path" || required.includes(name),
      ...(description === undefined ? {} : { description }),
      ...(shown.type === "array" ? { style: "form", explode: false } : {}),
      schema: shown,
    };
  });
}

const eventNumber = { type: "integer", minimum: 0 };
const afterParameter = {
  name: AFTER_HEADER,
  in: "header",
  required: false,
  description: "The number of an event that is to be applied here before this is answered; held back for 5 s at most.",
  schema: eventNumber,
};
const ageParameter = {
  name: "cache-control",
  in: "header",
  required: false,
  description: "max-age=1: the answer may be the one that a caller with the same rights had within the last second.",
  schema: { type: "string" },
};
/** On the answers of a call that needs a token. */
const positionHeaders = {
  [SEQ_HEADER]: {
    description: "The number of an event that is durable; what the answer tells of is at or below it.",
    schema: eventNumber,
  },
  [LEADER_HEADER]: {
    description: "Of a node of a cluster: where its leader is reached, if one is known.",
    schema: { type: "string" },
  },
  [AGE_HEADER]: {
    description: "Of a node that follows: for how long it may have missed what the leader did, in milliseconds.",
    schema: eventNumber,
  },
};

const versionHeader = {
  [PROTOCOL_HEADER]: {
    description: "The version of the protocol.",
    schema: { type: "string", const: String(PROTOCOL_VERSION) },
  },
};

function answersOf({ answers, produces, summary, roles }: Call, refTo: RefTo): Published {
  const headers = roles === null ? versionHeader : { ...versionHeader, ...positionHeaders };
  const shown = Object.entries(answers).map(([status, schema]) => {
    const content = produces.map((media) => [
      media,
      {
        schema:
          media === "text/event-stream" ? { type: "string" } : media === BYTES ? BINARY : published(schema, refTo),
      },
    ]);
    return [status, { description: summary, headers, content: Object.fromEntries(content) }];
  });
  return Object.fromEntries(shown) as Published;
}

const retryAfter = {
  "retry-after": { description: "Seconds to wait before the next try.", schema: { type: "integer", minimum: 0 } },
};

/** Refusals by status: one status may stand for several codes. */
function refusalsOf(call: Call, refTo: RefTo): Published {
  const byStatus = Map.groupBy(errorsOf(call), (code) => WIRE_CODES[code].status);
  const shown = [...byStatus].map(([status, codes]) => [
    status,
    {
      description: codes.map((code) => `\`${code}\`: ${WIRE_CODES[code].meaning}.`).join("\n\n"),
      headers: status === 429 || status === 503 ? { ...versionHeader, ...retryAfter } : versionHeader,
      content: { "application/json": { schema: published(wireErrorSchema, refTo) } },
    },
  ]);
  return Object.fromEntries(shown) as Published;
}
