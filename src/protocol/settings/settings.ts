/**
 * `drover.yml`, read: what the core decides by, and what only the service around it needs.
 *
 * The core's sections are read by the core. The rest is read here and never becomes part of the core's config, since
 * that is written into the log, and tokens and secrets must not be. A section that is there but empty, as when all
 * its lines are comments, is as good as absent.
 */
import {
  badField,
  fail,
  isRecord,
  ok,
  type Reader,
  type Refusal,
  type Result,
  size,
  span,
} from "../../core/base/index.ts";
import { type Config, readConfig } from "../../core/config/index.ts";
import type { Section } from "../schema/knobs.ts";
import { readShape } from "../schema/validate.ts";
import {
  BODY_LIMIT,
  clusterSection,
  coreSections,
  DEFAULT_LOG_URL,
  LEASE_MS,
  serverSection,
  settingsSchema,
  webhooksSection,
} from "./schema.ts";
import { type TokenSettings, tokenFaults } from "./tokens.ts";

type ServerSettings = {
  readonly host: string;
  readonly port: number;
  /** In bytes. */
  readonly bodyLimit: number;
  /** In milliseconds. */
  readonly shutdownGrace: number;
  readonly tokens: readonly TokenSettings[];
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly telemetry: boolean;
};
export type WebhookSettings = {
  /** For one try as a whole, in milliseconds. */
  readonly timeout: number;
  /** How often it is tried before it is given up. */
  readonly attempts: number;
  /** How many are under way at once. */
  readonly concurrency: number;
  readonly allowPrivate: boolean;
  /** Signs what is sent; null: unsigned. */
  readonly secret: string | null;
};
/** This node of a cluster. */
type ClusterSettings = {
  /** In milliseconds. */
  readonly lease: number;
  /** Null: a name that is kept in the data directory. */
  readonly node: string | null;
  /** Null: where it listens. */
  readonly advertise: string | null;
};
export type Settings = {
  readonly config: Config;
  readonly server: ServerSettings;
  readonly webhooks: WebhookSettings;
  readonly cluster: ClusterSettings;
  readonly log: { readonly url: string };
};

const SECTIONS: readonly string[] = [...Object.keys(coreSections), "server", "webhooks", "cluster"];

/** The settings that a file gives, over the defaults; or the first thing that is wrong with it. */
export function readSettings(value: unknown): Result<Settings, Refusal> {
  const given = value ?? {};
  if (!isRecord(given)) return fail(badField("drover.yml", given, `sections: ${SECTIONS.join(", ")}`));
  const stranger = Object.keys(given).find((key) => key !== "$schema" && !SECTIONS.includes(key));
  if (stranger !== undefined) return fail({ type: "unknown-field", field: stranger, known: SECTIONS });
  const { $schema: _, server, webhooks, cluster, log, ...core } = withoutEmpty(given);
  for (const key of NAMED) if (isRecord(core[key])) core[key] = withNames(core[key], coreSections[key]);
  const url = isRecord(log) && log.url !== undefined ? readShape(logUrl, log.url, "log.url") : ok(DEFAULT_LOG_URL);
  if (!url.ok) return url;
  const config = readConfig({ ...core, ...(log === undefined ? {} : { log: withoutUrl(log) }) });
  if (!config.ok) return config;
  const [fault] = isRecord(server) ? tokenFaults(server.tokens) : [];
  if (fault !== undefined) return fail(fault);
  const serverRead = readOver<ServerSettings>(serverSection, server, "server", {
    bodyLimit: size(BODY_LIMIT.min, BODY_LIMIT.max),
    shutdownGrace: span(0),
  });
  if (!serverRead.ok) return serverRead;
  const webhooksRead = readOver<WebhookSettings>(webhooksSection, webhooks, "webhooks", { timeout: span(1) });
  if (!webhooksRead.ok) return webhooksRead;
  const lease = span(LEASE_MS.min, LEASE_MS.max);
  const clusterRead = readOver<ClusterSettings>(clusterSection, cluster, "cluster", { lease });
  if (!clusterRead.ok) return clusterRead;
  const service = { server: serverRead.value, webhooks: webhooksRead.value, cluster: clusterRead.value };
  return ok({ config: config.value, ...service, log: { url: url.value as string } });
}

type WithProperties = { readonly properties: Readonly<Record<string, Section & { readonly default?: unknown }>> };
const propertiesOf = (schema: unknown): WithProperties["properties"] => (schema as WithProperties).properties;
const logUrl = propertiesOf(propertiesOf(settingsSchema).log).url as Section;

const withoutEmpty = (given: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(given).filter(([, section]) => section !== null && section !== undefined));

const NAMED = ["projects", "gates"];

/** In a file `named` is a name like any other. In the form the core gives back, all names stand under that one. */
function withNames(section: Record<string, unknown>, schema: unknown): Record<string, unknown> {
  const own = Object.keys(propertiesOf(schema));
  const isOwn = ([key]: [string, unknown]): boolean => own.includes(key);
  const entries = Object.entries(section);
  const named = Object.fromEntries(entries.filter((entry) => !isOwn(entry)));
  return { ...Object.fromEntries(entries.filter(isOwn)), named };
}

function withoutUrl(log: unknown): unknown {
  if (!isRecord(log)) return log;
  const { url: _, ...rest } = log;
  return rest;
}

/** A section checked by its schema, over the defaults the schema names; `units` turn what people write into numbers. */
function readOver<Value extends object>(
  schema: Section,
  given: unknown,
  at: string,
  units: { readonly [Key in keyof Value]?: Reader<Value[Key]> },
): Result<Value, Refusal> {
  const read = readShape(schema, given ?? {}, at);
  if (!read.ok) return read;
  const whole = new Map<string, unknown>();
  for (const [key, knob] of Object.entries(propertiesOf(schema))) whole.set(key, read.value[key] ?? knob.default);
  for (const [key, unit] of Object.entries(units) as [string, Reader<unknown>][]) {
    const inUnits = unit(whole.get(key), `${at}.${key}`);
    if (!inUnits.ok) return inUnits;
    whole.set(key, inUnits.value);
  }
  return ok(Object.fromEntries(whole) as Value);
}
