/**
 * OpenTelemetry spans: one for each request that was answered, and for each task that ended one for its whole life with
 * its waiting and its last run inside.
 *
 * Spans are made when what they tell of is over, from what is known then, so nothing is kept for tasks under way and a
 * restart loses none. They hold ids, names and numbers, never what a task holds. Where the program that runs the
 * server has set up OpenTelemetry itself, its set-up is used. Else spans go by OTLP over HTTP to
 * OTEL_EXPORTER_OTLP_ENDPOINT (the other variables of that standard hold too); the packages that do this are optional,
 * because most servers send no spans.
 */
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { Task } from "../../core/model/index.ts";
import { isEnd } from "../../engine/tasks/index.ts";
import type { Applied } from "../../engine/writer/index.ts";

const ENDPOINTS = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] as const;
const PACKAGES = "@opentelemetry/sdk-trace @opentelemetry/exporter-trace-otlp-http";
const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
/** What is not sent yet when the server stops may take so long. */
const FLUSH_MS = 2000;

/** A request that was answered; `route` is the pattern, never the path itself. */
type Answered = {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  /** The caller's own span, if it sent one. */
  readonly traceparent: string | undefined;
};
export type Spans = {
  onAnswered(answered: Answered): void;
  onCommitted(batch: readonly Applied[]): void;
  /** Sends what is not sent yet. */
  stop(): Promise<void>;
};
type Provider = { readonly tracer: Tracer; readonly stop: () => Promise<void> };

/** What sends spans. */
type Sdk = readonly [
  typeof import("@opentelemetry/sdk-trace"),
  typeof import("@opentelemetry/exporter-trace-otlp-http"),
  typeof import("@opentelemetry/resources"),
];
const loadSdk = (): Promise<Sdk> =>
  Promise.all([
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
  ]);

export type SpanOptions = {
  /** The config asks for spans; then it is an error if they cannot be sent. */
  readonly isWanted: boolean;
  readonly version: string;
  readonly onWarning: (message: string) => void;
  readonly env?: NodeJS.ProcessEnv;
  readonly load?: () => Promise<Sdk>;
};

/** Null where no spans are wanted. */
export async function createSpans(options: SpanOptions): Promise<Spans | null> {
  const { isWanted, version, env = process.env } = options;
  if (!isWanted && ENDPOINTS.every((name) => (env[name] ?? "") === "")) return null;
  const provider = providerOfHost(version) ?? (await ownProvider(options));
  if (provider === null) return null;
  const { tracer, stop } = provider;
  return {
    onAnswered: (answered) => spanOfAnswer(tracer, answered),
    onCommitted(batch) {
      for (const { event, task } of batch) {
        if (isEnd(event) && task !== null) spansOfTask(tracer, task, event.kind.slice("task-".length), event.at);
      }
    },
    stop,
  };
}

/** The tracer of the program we run in, if it has one that records. */
function providerOfHost(version: string): Provider | null {
  const tracer = trace.getTracer("drover", version);
  return tracer.startSpan("probe").isRecording() ? { tracer, stop: async () => {} } : null;
}

/** The variable is there for every program of a machine, so what is missing is an error only if the config wants it. */
async function ownProvider({ isWanted, version, onWarning, load = loadSdk }: SpanOptions): Promise<Provider | null> {
  try {
    return providerWith(await load(), version);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    const why = isWanted ? "server.telemetry is true" : "OTEL_EXPORTER_OTLP_ENDPOINT is set";
    const text = `${why}, and what sends spans is not installed: npm install ${PACKAGES}`;
    if (isWanted) throw new Error(text);
    onWarning(text);
    return null;
  }
}

function providerWith([sdk, otlp, resources]: Sdk, version: string): Provider {
  const attributes = { "service.name": "drover", "service.version": version };
  const provider = new sdk.TracerProvider({
    resource: resources.defaultResource().merge(resources.resourceFromAttributes(attributes)),
    sampler: new sdk.ParentBasedSampler({ root: new sdk.AlwaysOnSampler() }),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter: new otlp.OTLPTraceExporter() })],
  });
  return { tracer: provider.getTracer("drover", version), stop: () => within(FLUSH_MS, provider.shutdown()) };
}

/** A collector of spans must not be able to hold up a shutdown. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  await Promise.race([work.catch(() => {}), over.promise]);
  clearTimeout(timer);
}

function spanOfAnswer(tracer: Tracer, { method, route, status, ms, traceparent }: Answered): void {
  const endTime = Date.now();
  const attributes: Attributes = {
    "http.request.method": method,
    "http.route": route,
    "http.response.status_code": status,
  };
  const startTime = new Date(endTime - ms);
  const span = tracer.startSpan(
    `${method} ${route}`,
    { kind: SpanKind.SERVER, startTime, attributes },
    from(traceparent),
  );
  if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end(endTime);
}

/** The span of the caller, if it sent its own. */
function from(traceparent: string | undefined): Context {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return ROOT_CONTEXT;
  const traceFlags = Number.parseInt(flags, 16);
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

function spansOfTask(tracer: Tracer, task: Task, outcome: string, endedAt: number): void {
  const { createdAt, runnableAt, startedAt } = task;
  const attributes: Attributes = {
    "drover.task.id": task.id,
    "drover.task.type": task.requirements.type,
    "drover.task.outcome": outcome,
    "drover.task.attempts": task.attempts,
    "drover.project": task.project.id,
    "drover.agent": task.agent.id,
    ...(task.lastWorker === null ? {} : { "drover.worker": task.lastWorker }),
  };
  const whole = tracer.startSpan("task", { startTime: createdAt, attributes }, ROOT_CONTEXT);
  const inside = trace.setSpan(ROOT_CONTEXT, whole);
  const part = (name: string, startTime: number, endTime: number): void =>
    tracer.startSpan(name, { startTime, attributes: { "drover.task.id": task.id } }, inside).end(endTime);
  if (startedAt >= 0) {
    if (runnableAt >= 0 && runnableAt <= startedAt) part("task wait", runnableAt, startedAt);
    if (startedAt <= endedAt) part("task run", startedAt, endedAt);
  }
  if (outcome === "failed") whole.setStatus({ code: SpanStatusCode.ERROR });
  whole.end(endedAt);
}
