/** What other layers may use of this room. */

export { CONNECTION_LIMITS, type ConnectionLimits, createListener, type Listener } from "./listener.ts";
export { createLongPolls, type EndOfPoll, type LongPolls, PollEnded, type Polled } from "./long-polls.ts";
export { createOriginCheck, type OriginCheck } from "./origin-check.ts";
export {
  type Exchange,
  ExchangeFailure,
  exchange,
  headerText,
  type OutboundRequest,
  type ResolvedAddress,
} from "./outbound.ts";
export { badHeader, bug, forbidden, type Problem, problem, ServerRefusal } from "./problem.ts";
export { type BodyLimits, readBody } from "./request-body.ts";
export { createRequestCheck, type RequestCheck } from "./request-check.ts";
export { createRequestTurns, type PipelineLimits } from "./request-turn.ts";
export {
  AnswerText,
  asText,
  cutOffSilent,
  headersOf,
  JSON_TYPE,
  leaveRest,
  type OnAnswered,
  type RequestContext,
  SAFE_HEADERS,
  type SendParts,
  sendAnswer,
  sendProblem,
} from "./send-answer.ts";
export { createSharedSlots } from "./shared-slots.ts";
export { createStreams, frameOf, type StreamLimits, type Streams } from "./sse.ts";
export {
  type Access,
  type Caller,
  createAccess,
  type Grant,
  type Holder,
  holderOf,
  isScoped,
  type KnownToken,
  tokenIn,
} from "./tokens.ts";
export { createTurnstile, inItsTurn, type Turnstile } from "./turnstile.ts";
export { createUnfinishedBodies } from "./unfinished-bodies.ts";
export { createUnreadAnswers } from "./unread-answers.ts";
export { spare, uploadOf } from "./upload.ts";
