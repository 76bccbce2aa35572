/**
 * A schema with the keywords that the generated documents and types are written from.
 */
import type { Schema } from "../../src/protocol/schema/schema.ts";

export type Shown = Schema & {
  readonly properties?: Readonly<Record<string, Shown>>;
  readonly required?: readonly string[];
  readonly items?: Shown;
  readonly anyOf?: readonly Shown[];
  readonly additionalProperties?: boolean | Shown;
  readonly enum?: readonly string[];
  readonly const?: unknown;
  readonly type?: string;
  readonly format?: string;
};
