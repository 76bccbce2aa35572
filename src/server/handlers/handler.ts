/**
 * What the answer to a call is made from: the engine, what the server knows of itself, and who is asking.
 */
import { DroverError } from "../../engine/base/index.ts";
import type { Drover } from "../../engine/index.ts";
import type { LongPolls, Polled } from "../../http/index.ts";
import type { Answered, Asked, CallName, Settings, SettingView } from "../../protocol/index.ts";
import type { ServerPhase } from "../life/phase.ts";
import type { LogRequests } from "../logs/log-requests.ts";
import type { TurnedAway } from "../observe/event-log.ts";
import type { PushDriver } from "../push/drivers.ts";
import type { Snapshot } from "../webhooks/delivery.ts";

type LogTail = { readonly attempt: number; readonly text: string; readonly truncated: boolean };
/** The end of what an attempt wrote; without a number, of the last attempt. Null if it is not here. */
export type LogsOf = (
  taskId: string,
  attempt: number | undefined,
  options: { readonly tail: number; readonly taskAgeMs?: number },
) => Promise<LogTail | null> | LogTail | null;

export type Deps = {
  readonly drover: Drover;
  /** What is decided at once, of the life in which it is asked for: what it decided is told by that one alone. */
  readonly early: () => Drover["early"];
  readonly settings: () => Settings;
  /** Every knob that the host of the server gave, and where it had it from. */
  readonly settingViews: () => readonly SettingView[];
  readonly phase: ServerPhase;
  readonly polls: LongPolls;
  readonly push: Pick<PushDriver, "join" | "giveBack" | "left">;
  readonly version: string;
  /** This start of the server. */
  readonly serverId: string;
  readonly logsOf: LogsOf;
  /** Logs that lie with workers. */
  readonly logs: LogRequests;
  /** Whether workers speak to this server: those of a cluster, to the leader. */
  readonly hearsWorkers: () => boolean;
  readonly onReload: () => Promise<unknown>;
  /** A task found no room, and its webhook says so. */
  readonly onRejected: (task: Snapshot) => void;
  readonly onTurnedAway: (task: TurnedAway) => void;
  readonly url: () => string;
};

/** One request under way. */
export type Exchange = Polled & {
  /** Further headers of the answer, each name followed by its value. */
  readonly headers: string[];
};
/** An answer, or why not, that is decided and told when that is durable (`drover.early`). */
export class Decided<Answer> {
  private readonly answer: Answer | DroverError;
  /** Resolves when it may be told. */
  readonly settled: () => Promise<void>;

  constructor(answer: Answer | DroverError, settled: () => Promise<void>) {
    this.answer = answer;
    this.settled = settled;
  }

  /** The answer; throws why not. */
  told(): Answer {
    if (this.answer instanceof DroverError) throw this.answer;
    return this.answer;
  }
}
type Handler<Name extends CallName> = (
  asked: Asked<Name>,
  exchange: Exchange,
) => Promise<Answered<Name>> | Answered<Name> | Decided<Answered<Name>>;
export type Handlers<Names extends CallName = CallName> = { readonly [Name in Names]: Handler<Name> };
