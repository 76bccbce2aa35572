/**
 * The way of every call, from the head of its request to its answer.
 *
 * Before its body is read: is this a request for this server, is the caller known, may it, is this begun at all now.
 * Then path, query and body are read by the protocol's own validator, and past that nothing is unknown. The answer is
 * JSON with the status the table of calls names. Every step is a plain call of the next, on what `node:http` hands
 * over; only what has to wait is a promise, because this way is what a submit costs beside the engine.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { badField, isRecord, type Refusal, type Result } from "../core/base/index.ts";
import { refused } from "../engine/base/index.ts";
import type { ReplicaSource } from "../engine/node/index.ts";
import {
  type Access,
  AnswerText,
  type BodyLimits,
  type Caller,
  createTurnstile,
  cutOffSilent,
  forbidden,
  type Holder,
  headersOf,
  holderOf,
  JSON_TYPE,
  PollEnded,
  type RequestCheck,
  type RequestContext,
  readBody,
  type SendParts,
  sendAnswer,
  sendProblem,
  spare,
  type Turnstile,
} from "../http/index.ts";
import { CALLS, type Call, type CallName, type RawQuery, type Role, readQuery, readShape } from "../protocol/index.ts";
import { isRead, LOOKS } from "../protocol/wire/index.ts";
import { checkScope } from "./access/token-scope.ts";
import { AS_IT_COMES } from "./cluster/forward.ts";
import { GIVEN_BYTES_MAX } from "./cluster/given-ids.ts";
import type { Position } from "./cluster/position.ts";
import type { ClusterSide } from "./cluster/side.ts";
import { Decided, type Exchange, type Handlers } from "./handlers/handler.ts";
import { ANSWERED } from "./handlers/server.ts";
import type { KeptAnswers, Place } from "./kept-answers.ts";
import type { ServerPhase } from "./life/phase.ts";

export type CallParts = SendParts &
  BodyLimits & {
    readonly handlers: Handlers;
    readonly phase: ServerPhase;
    readonly checkRequest: RequestCheck;
    readonly access: () => Access;
    readonly position: Position;
    readonly kept: KeptAnswers;
    /** Null where the server is no node of a cluster. */
    readonly cluster: ClusterSide | null;
    readonly replica: ReplicaSource | null;
  };
/** What path and query hold, as text. */
type Target = { readonly params: unknown; readonly query: RawQuery };
type AnswerCall = (request: IncomingMessage, response: ServerResponse, target: Target) => void;
type Underway = Exchange &
  RequestContext & {
    readonly target: Target;
    /** Null where the answer is for nobody else. */
    place: Place | null;
    /** It was looked for elsewhere. */
    readonly isLastTry?: true;
  };
type AnyHandler = (asked: unknown, exchange: Exchange) => unknown;

/** How many of a call are worked on at once, where its answer may be large. */
const AT_ONCE: Partial<Record<CallName, number>> = {
  tasks: 1,
  schedules: 1,
  projects: 1,
  workers: 1,
  gates: 1,
  stats: 1,
  queue: 1,
  line: 1,
  task: 32,
  patch: 32,
  events: 4,
  putFile: 32,
  file: 32,
  metrics: 1,
};
/** How many of these one caller has at once: how long each takes is up to who sends, or reads. */
const OF_EACH: Partial<Record<CallName, number>> = { putFile: 8, file: 8 };
/** As many as any worker may send. */
const SYNC_BYTES = 1_048_576;
const nothing = (): void => {};

/** The caller of what needs no token. */
const NOBODY: Caller = { role: "viewer", projects: null, agentId: null };

/** All workers may have the same token: each connection of theirs counts as one. */
const visitorOf = ({ caller, request }: Exchange): Holder =>
  caller.role === "worker" ? request.socket : holderOf(caller, request);

/** `/tasks/{id}` as the router writes it. */
export const routePath = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ":$1");

export function answerCall(name: CallName, parts: CallParts): AnswerCall {
  const { phase, position, cluster } = parts;
  const call = CALLS[name] as unknown as Call;
  const handle = parts.handlers[name] as unknown as AnyHandler;
  const route = routePath(call.path);
  const admit = admitter(name, call, parts);
  const whereItIs = position.stamp([]);
  const onAnswered = parts.observerOf(call.method, route);
  const isLook = LOOKS.has(name);
  const send = senderOf(call, parts);
  const atOnce = AT_ONCE[name];
  const inTurn: Turnstile | null = atOnce === undefined ? null : createTurnstile(atOnce, undefined, OF_EACH[name]);

  /** What another node has is answered by that one. */
  function lookElsewhere(exchange: Underway, side: ClusterSide, error: unknown): void {
    const { request, response, startedAt, target } = exchange;
    side
      .elsewhere({
        name,
        request,
        response,
        holder: visitorOf(exchange),
        refusal: error,
        params: target.params as Readonly<Record<string, unknown>>,
      })
      .then((passed) => {
        if (passed === null) return refuse(exchange, error);
        if (passed === "here") return takeTurn({ ...exchange, isLastTry: true }, undefined);
        phase.end();
        onAnswered(passed.status, performance.now() - startedAt, request.headers.traceparent as string | undefined);
      })
      .catch((failure: unknown) => refuse(exchange, failure))
      .catch((bug: unknown) => parts.onBug(bug, route));
  }
  function fail(exchange: Underway, error: unknown): void {
    if (cluster?.mayBe(name, error) === true && exchange.isLastTry !== true) lookElsewhere(exchange, cluster, error);
    else refuse(exchange, error);
  }
  function refuse(exchange: Underway, error: unknown): void {
    phase.end();
    const isGone = error instanceof PollEnded && error.why === "hung-up";
    if (!isGone) sendProblem(parts, exchange, error, whereItIs());
  }
  function trySend(exchange: Underway, told: () => unknown): void {
    try {
      send(exchange, told());
    } catch (error) {
      return fail(exchange, error);
    }
    phase.end();
  }
  function later<Value>(exchange: Underway, when: Promise<Value>, told: (value: Value) => unknown): Promise<void> {
    return when.then(
      (value) => trySend(exchange, () => told(value)),
      (error: unknown) => fail(exchange, error),
    );
  }
  function answer(exchange: Underway, body: unknown, over: () => void): void {
    try {
      if (isLook) exchange.place = parts.kept.place(exchange.request, exchange.caller);
      const known = exchange.place?.known ?? null;
      if (known !== null) {
        sendAnswer(parts, exchange, { status: 200, body: known.body, headers: known.headers }, onAnswered);
        phase.end();
        return over();
      }
      const answered = handle(askedBy(call, exchange.target, withAgent(call, exchange.caller, body)), exchange);
      if (answered instanceof Decided)
        return void later(exchange, answered.settled(), () => answered.told()).then(over);
      if (answered instanceof Promise) return void later(exchange, answered, (value) => value).then(over);
      trySend(exchange, () => answered);
    } catch (error) {
      fail(exchange, error);
    }
    over();
  }
  function takeTurn(exchange: Underway, body: unknown): void {
    if (inTurn === null) return answer(exchange, body, nothing);
    try {
      inTurn({
        holder: visitorOf(exchange),
        begin: (over) => answer(exchange, body, over),
        isGone: () => exchange.response.destroyed,
        leave: phase.end,
      });
    } catch (error) {
      fail(exchange, error);
    }
  }

  /** To the leader, who answers in place of this node. */
  function passOn(exchange: Underway, side: ClusterSide, body: unknown, bytes: Buffer | null): void {
    const { request, response, startedAt } = exchange;
    side
      .pass({ name, request, response, holder: visitorOf(exchange), body, bytes })
      .then(
        (passed) => {
          if ("here" in passed) return takeTurn(exchange, passed.here);
          phase.end();
          onAnswered(passed.status, performance.now() - startedAt, request.headers.traceparent as string | undefined);
        },
        (error: unknown) => fail(exchange, error),
      )
      .catch((error: unknown) => parts.onBug(error, route));
  }
  /** What changes something is the leader's; a read may have to wait for what its caller knows of. */
  function begin(exchange: Underway, body: unknown, bytes: Buffer | null): void {
    if (!isRead(name)) {
      if (cluster?.follows() === true) return passOn(exchange, cluster, name === "putFile" ? AS_IT_COMES : body, bytes);
      return takeTurn(exchange, body);
    }
    try {
      // What needs no token says nothing of the log, and waits for nothing of it.
      const awaited = call.roles === null ? null : position.awaited(exchange);
      if (awaited === null) return takeTurn(exchange, body);
      awaited.then(
        () => takeTurn(exchange, body),
        (error: unknown) => fail(exchange, error),
      );
    } catch (error) {
      fail(exchange, error);
    }
  }

  const limits = { bodies: parts.bodies, ...bodyLimitOf(name, parts.bodyLimit) };
  /** The node that sent it on has looked at its size, and may have added ids. */
  const forwardedLimits = { ...limits, addedBytesMax: GIVEN_BYTES_MAX };
  return (request, response, target) => {
    const startedAt = performance.now();
    const exchange = { caller: NOBODY, request, response, route, startedAt, headers: [], target, place: null };
    try {
      exchange.caller = admit(request);
    } catch (error) {
      if (cluster?.knowsBetter(request, error) !== true) return sendProblem(parts, exchange, error);
      phase.begin();
      return passOn(exchange, cluster, AS_IT_COMES, null);
    }
    phase.begin();
    if (name === "putFile") spare(request, response);
    if (call.body === null) return begin(exchange, undefined, null);
    const isLong = Number(request.headers["content-length"]) > limits.bodyLimit;
    readBody(request, isLong && cluster?.isSentOn(request) === true ? forwardedLimits : limits, (read) => {
      if (read.ok) begin(exchange, read.value, read.bytes);
      else fail(exchange, read.error);
    });
  };
}

/** A sync names all that a worker holds and brings what has ended: none of that could be left out. */
const bodyLimitOf = (name: CallName, bodyLimit: number): Omit<BodyLimits, "bodies"> =>
  name === "sync" && bodyLimit < SYNC_BYTES ? { bodyLimit: SYNC_BYTES, isOwnLimit: true } : { bodyLimit };

/** Says who is calling; throws if it may not, or if this is not begun now. */
function admitter(
  name: CallName,
  { roles }: Call,
  { checkRequest, access, phase }: CallParts,
): (r: IncomingMessage) => Caller {
  const callerOf = (authorization: string | undefined): Caller => {
    if (roles === null) return NOBODY;
    const caller = access()(authorization);
    checkCaller(name, roles, caller);
    return caller;
  };
  return (request) => {
    const refusal = checkRequest(request);
    if (refusal !== null) throw refusal;
    const caller = callerOf(request.headers.authorization);
    phase.check(name);
    return caller;
  };
}

/** Throws if the caller may not make this call at all. */
export function checkCaller(name: CallName, roles: readonly Role[], caller: Caller): void {
  if (!roles.includes(caller.role))
    throw forbidden(`the role ${caller.role} may not do this; it takes ${roles.join(" or ")}`, { roles });
  checkScope(name, caller);
}

function senderOf(call: Call, parts: CallParts): (exchange: Underway, answer: unknown) => void {
  const status = Number(Object.keys(call.answers)[0]);
  const isText = !call.produces.includes("application/json");
  const always = headersOf(isText ? `${call.produces[0]}; version=0.0.4; charset=utf-8` : JSON_TYPE);
  const onAnswered = parts.observerOf(call.method, routePath(call.path));
  // What needs no token says nothing of the log.
  const stamped = call.roles === null ? () => always : parts.position.stamp(always);
  return (exchange, answer) => {
    // A stream beats all the time, so one that is silent has no reader any more.
    if (answer === ANSWERED) return cutOffSilent(exchange.response, parts.silenceMs);
    const body = isText || Buffer.isBuffer(answer) ? (answer as string | Buffer) : textOf(answer);
    const headers = exchange.headers.length === 0 ? stamped() : stamped().concat(exchange.headers);
    exchange.place?.keep(body, headers);
    sendAnswer(parts, exchange, { status, body, headers }, onAnswered);
  };
}

const textOf = (answer: unknown): string => (answer instanceof AnswerText ? answer.text : JSON.stringify(answer));

/** Who speaks for one agent need not say for which: of a task, of a batch, or of the task of a schedule. */
export function withAgent({ operationId }: Call, { agentId }: Caller, body: unknown): unknown {
  if (agentId === null || !isRecord(body)) return body;
  if (operationId === "putSchedule") return isRecord(body.task) ? { ...body, task: { agentId, ...body.task } } : body;
  const isTask = operationId === "submit" || operationId === "submitBatch";
  return isTask && body.agentId === undefined ? { ...body, agentId } : body;
}

/** What was asked, read; throws the first thing that is wrong. */
function askedBy(call: Call, target: Target, body: unknown): unknown {
  const params = call.params === null ? undefined : orThrow(readShape(call.params, target.params));
  const query = call.query === null ? undefined : orThrow(readQuery(call.query, target.query));
  if (call.query === null) refuseQuery(target.query);
  return { params, query, body: call.body === null ? undefined : bodyOf(call, body) };
}

function refuseQuery(query: RawQuery): void {
  for (const field in query) throw refused({ type: "unknown-field", field, known: [] });
}

export function bodyOf(call: Call, given: unknown): unknown {
  if (given === undefined && call.needsBody)
    throw refused(badField("(body)", undefined, "JSON, with the header Content-Type: application/json"));
  return orThrow(readShape(call.body as NonNullable<Call["body"]>, given === undefined ? {} : given));
}

export function orThrow<Value>(read: Result<Value, Refusal>): Value {
  if (!read.ok) throw refused(read.failure);
  return read.value;
}
