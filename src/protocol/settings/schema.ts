/**
 * The whole of `drover.yml` as a schema, so that editors complete it, explain it and show every default.
 */
import { sizeText } from "../../core/base/index.ts";
import {
  ALL_FILES_BYTES_MAX,
  BYTES_MAX,
  BYTES_MIN,
  DEFAULT_CONFIG,
  FILE_BYTES_MAX,
  FILES_MAX,
} from "../../core/config/index.ts";
import { type Knobs, knob, namedSection, type Section, section, spanKnob, spanText } from "../schema/knobs.ts";
import { type Published, published, withUnits } from "../schema/published.ts";
import * as s from "../schema/schema.ts";
import { schedulerSection } from "../shapes/scheduler.ts";
import { priority } from "../shapes/tasks.ts";
import { TOKENS_MAX, tokenSchema } from "./tokens.ts";

/** Of the lead of a cluster. What renews it must have time, and a dead leader is waited for so long. */
export const LEASE_MS = { min: 1000, max: 4000, default: 3000 };
export const BODY_LIMIT = { min: 1024, max: 1_073_741_824, default: 1_048_576 };
export const DEFAULT_LOG_URL = "sqlite:.drover/drover.db";
const DAY_MS_TEXT = "24h";
const NODE_PATTERN = "^[A-Za-z0-9]([A-Za-z0-9._]|-){0,63}$";

const budget = (): Section =>
  section(
    {
      limit: knob(s.nullable(s.whole(1)), null, "Tokens in the window; null: as many as wanted."),
      window: knob(s.span(1000), DAY_MS_TEXT, "The window slides."),
    },
    { description: "A token budget." },
  );

const P = DEFAULT_CONFIG.projects.default;
const projectSection: Section = section(
  {
    weight: knob(s.finite(0, 1_000_000, true), P.weight, "Its share among the projects that have work."),
    maxConcurrent: knob(s.whole(1), P.maxConcurrent, "How many of its tasks run at once."),
    budget: budget(),
    maxPriority: knob(
      priority(),
      "high",
      "The most urgent its tasks and calls may be; critical opens the express lane.",
    ),
    provider: knob(s.nullable(s.name()), P.provider, "The gate of tasks that name none."),
    bytesPerMinute: knob(
      s.nullable(s.size(BYTES_MIN, BYTES_MAX)),
      sizeText(P.bytesPerMinute ?? 0),
      "What it may store in a minute: bodies, results, events; null: as much as it likes.",
    ),
  },
  { description: "A project." },
);

const G = DEFAULT_CONFIG.gates.default;
const perWindow = (description: string): s.Schema => knob(s.nullable(s.whole(1)), null, description);
const gateSection: Section = section(
  {
    maxConcurrent: knob(s.whole(1, 1_000_000), G.maxConcurrent, "Calls that are out at once."),
    requests: knob(s.whole(1), G.requests, "Calls in any window."),
    window: spanKnob(1, G.windowMs, "The window of requests; it slides."),
    tokens: section(
      {
        perMinute: perWindow("Tokens in a minute; null: not limited."),
        perHour: perWindow("Tokens in an hour; null: not limited."),
        perDay: perWindow("Tokens in a day; null: not limited."),
        kind: knob(s.oneOf("sliding", "fixed"), G.tokens.kind, "fixed: restarts at the first use after its end."),
      },
      { description: "Token windows." },
    ),
    defaultPriority: knob(s.oneOf("critical", "high", "normal", "low"), G.defaultPriority, "Of calls that say none."),
    agingPerClass: spanKnob(1, G.agingPerClassMs, "Waiting so long counts as one class more urgent."),
    permitTtl: spanKnob(1, G.permitTtlMs, "A permit that is not given back returns after this."),
  },
  { description: "A gate." },
);

const tokenList: s.Schema = s.noted(s.list(tokenSchema, { max: TOKENS_MAX }), { secret: true });
const hosts = (): s.Schema => s.list(s.text(1, 256), { max: 1000 });
export const serverSection: Section = section(
  {
    host: knob(s.text(1, 256), "127.0.0.1", "The address to listen on; another than loopback needs tokens."),
    port: knob(s.whole(0, 65_535), 4747, "0: any that is free."),
    bodyLimit: knob(
      s.size(BODY_LIMIT.min, BODY_LIMIT.max),
      "1MiB",
      "The largest body of a request; a worker's sync may have 1 MiB in any case.",
    ),
    shutdownGrace: spanKnob(0, 10_000, "How long what runs may take to end when the server stops."),
    tokens: knob(tokenList, [], "Who may call; empty: anybody who reaches the address."),
    allowedHosts: knob(hosts(), [], "Further names under which the server may be called, beside its own address."),
    allowedOrigins: knob(hosts(), [], "Origins of web pages that may call the server, beside its own."),
    telemetry: knob(
      s.flag(),
      false,
      "Sends OpenTelemetry spans: by the program's own set-up, else to OTEL_EXPORTER_OTLP_ENDPOINT.",
    ),
  },
  { description: "Where Drover listens, and to whom." },
);
export const webhooksSection: Section = section(
  {
    timeout: spanKnob(1, 10_000, "How long a delivery may take."),
    attempts: knob(s.whole(1, 1000), 8, "How often a delivery is tried."),
    concurrency: knob(
      s.whole(1, 1000),
      16,
      "Deliveries at once; a quarter of them is kept for hosts that have answered.",
    ),
    allowPrivate: knob(s.flag(), false, "Whether private, loopback and link-local addresses are let through."),
    secret: knob(
      s.noted(s.nullable(s.text(1, 1024)), { secret: true, expected: "text of 1 to 1024 characters, or null" }),
      null,
      "Signs deliveries: X-Drover-Signature is their HMAC-SHA-256.",
    ),
  },
  { description: "Where tasks are posted when they have ended." },
);
export const clusterSection: Section = section(
  {
    lease: knob(
      s.span(LEASE_MS.min, LEASE_MS.max),
      spanText(LEASE_MS.default),
      "A leader that was not heard of for so long is replaced.",
    ),
    node: knob(
      s.nullable(s.matching(NODE_PATTERN, "a name of 1 to 64 letters, digits, dots, hyphens and underscores")),
      null,
      "The name of this node; null: one that is made once and kept in the data directory.",
    ),
    advertise: knob(
      s.nullable(s.webOrigin()),
      null,
      "Where other nodes and clients reach this node; null: where it listens.",
    ),
  },
  { description: "This node of a cluster, where log.url names a journal that nodes share." },
);

const W = DEFAULT_CONFIG.workers;
const L = DEFAULT_CONFIG.log;
const F = DEFAULT_CONFIG.files;
/** The core's sections of the file. */
export const coreSections: Knobs = {
  scheduler: schedulerSection,
  budget: s.described(budget(), "The token budget of all projects together."),
  projects: namedSection(
    {
      autoCreate: knob(
        s.flag(),
        DEFAULT_CONFIG.projects.autoCreate,
        "Whether a project that is not registered is created.",
      ),
      default: s.described(projectSection, "What a project has that says nothing else."),
    },
    projectSection,
    "Who pays; each by its name.",
  ),
  gates: namedSection(
    { default: s.described(gateSection, "What a gate has that says nothing else.") },
    gateSection,
    "Provider accounts and other scarce things; each by its name, such as anthropic/default.",
  ),
  workers: section(
    {
      lease: spanKnob(100, W.lease, "A worker silent for so long is given up."),
      maxWorktrees: knob(s.whole(1, 100_000), W.maxWorktrees, "Worktrees an exec worker keeps at most."),
      killGrace: spanKnob(0, W.killGrace, "How long a task that must stop may take to end."),
      artifactPoll: spanKnob(1, W.artifactPoll, "How often missing input artifacts are looked for."),
    },
    { description: "Who executes." },
  ),
  artifacts: section(
    {
      root: knob(
        s.nullable(s.text(1, 4096)),
        DEFAULT_CONFIG.artifacts.root,
        "The directory that input artifacts lie under; null: where the server was started.",
      ),
      anywhere: knob(s.flag(), DEFAULT_CONFIG.artifacts.anywhere, "Whether an input artifact may be any path."),
    },
    { description: "The files that tasks wait for." },
  ),
  files: section(
    {
      maxFile: knob(s.size(1, FILE_BYTES_MAX), sizeText(F.maxFile), "The largest file a task may leave."),
      maxTask: knob(s.size(1, ALL_FILES_BYTES_MAX), sizeText(F.maxTask), "All files of one task together."),
      maxFilesPerTask: knob(s.whole(1, FILES_MAX), F.maxFilesPerTask, "How many files one task may leave."),
      maxTotal: knob(s.size(1, ALL_FILES_BYTES_MAX), sizeText(F.maxTotal), "All files that are kept."),
    },
    { description: "The files that tasks leave." },
  ),
  log: section(
    {
      url: knob(
        s.noted(s.text(1, 2048), { secret: true }),
        DEFAULT_LOG_URL,
        "Where the log is: sqlite:PATH, memory:, or a journal that nodes share: etcd://… or postgres://….",
      ),
      snapshotEvery: knob(s.whole(1), L.snapshotEvery, "Events between two snapshots."),
      retain: spanKnob(1000, L.retain, "How long events are kept."),
      maxClockJump: spanKnob(1000, L.maxClockJump, "A clock that jumps ahead further is believed after a minute."),
      maxBytes: knob(
        s.nullable(s.size(BYTES_MIN, BYTES_MAX)),
        L.maxBytes,
        "No more work is taken in when the log is so large; null: as long as the disk has room.",
      ),
      signEvery: section(
        {
          events: knob(s.whole(1), L.signEvery.events, "Events that may be unsigned."),
          time: spanKnob(1000, L.signEvery.time, "How long they may be."),
        },
        { description: "How much of the log's end may be unsigned." },
      ),
    },
    { description: "Where everything is remembered." },
  ),
};

export const settingsSchema: Section = section({
  $schema: s.described(s.text(0, 2048), "The address of this schema, for editors."),
  ...coreSections,
  server: serverSection,
  webhooks: webhooksSection,
  cluster: clusterSection,
});

/** The file that editors read. */
export const settingsJsonSchema = (): Published => ({
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "drover.yml",
  description: "The config of Drover. Spans are text with a unit: 250ms, 30s, 5m, 24h, 30d.",
  ...withUnits(published(settingsSchema)),
});
