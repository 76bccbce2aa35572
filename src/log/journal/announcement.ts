/**
 * Reading what a node has told of itself: whoever can write to the journal can put anything there. So a node signs how
 * far it is, with the key that the log names for it, and others can compare their history with what it has signed.
 *
 * What is read here is shown to people, taken down in the log, and connected to. A word that no version of ours can
 * have written, or that is told in another's name, is passed over, and said once.
 */
import { isCount, isName, isRecord, isSha256, seq } from "../../core/base/index.ts";
import { type Seal, type Signer, sealOf, verifierFor } from "../integrity/signing-key.ts";
import type { NodeAnnouncement, NodeSeen } from "./journal.ts";

type Vouched = Pick<NodeAnnouncement, "node" | "seq" | "hash">;
/** A name may hold anything, so it comes last. */
const seal: Seal<Vouched> = sealOf(({ node, seq: at, hash }) => `drover node 1 ${at} ${hash} ${node}`);

export const vouchFor = (signer: Pick<Signer, "sign">, told: Vouched): string => seal.sign(signer, told).signature;
/** Whether the key, SPKI in base64, has signed how far that node is. */
export const isVouchedBy = (key: string, { signature = "", ...told }: NodeSeen): boolean =>
  seal.holds(verifierFor(key), { ...told, signature });

/** A journal lists no more nodes, and no word that is longer. */
export const NODES_MAX = 256;
export const WORD_BYTES_MAX: number = 64 * 1024;
const NAME_MAX = 64;
const URL_MAX = 512;
const WARNINGS_MAX = 8;
const SENTENCE_MAX = 2000;
/** Signs that would change how the rest of a line is shown: of control, of direction, ends of lines. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** Keys, signatures and starts: letters and digits, and what base64 and names have beside them. */
const TOKEN = /^[\w+/=.: -]{0,512}$/;

const isToken = (value: unknown): value is string => typeof value === "string" && TOKEN.test(value);
const isSentence = (text: unknown): text is string =>
  typeof text === "string" && text !== "" && text.length <= SENTENCE_MAX && text.isWellFormed();
const inOneLine = (text: string): string => text.replaceAll(new RegExp(UNSEEN, "gu"), " ");

/** The address of a node: a host and a port, without a path, a user or anything else. */
const ADDRESS = /^https?:\/\/[^\s/?#@\\]+\/?$/;
const isAddress = (value: unknown): value is string =>
  typeof value === "string" &&
  value.length <= URL_MAX &&
  ADDRESS.test(value) &&
  !UNSEEN.test(value) &&
  URL.canParse(value);

/** Null for what no version of ours has written. */
export function readAnnouncement(told: unknown, ageMs: number): NodeSeen | null {
  if (!isRecord(told)) return null;
  const { node, url, seq: at, hash, epoch, stored, key, behindMs, start, now, isStopped, warnings, signature } = told;
  if (!isName(node, NAME_MAX) || UNSEEN.test(node) || !isAddress(url) || !isSha256(hash)) return null;
  if (!isCount(at) || !isCount(epoch) || !isCount(stored)) return null;
  const seen = { node, url, seq: seq(at), hash, epoch, stored: seq(stored), ageMs };
  const words = Array.isArray(warnings) ? warnings.slice(0, WARNINGS_MAX).filter(isSentence).map(inOneLine) : null;
  return {
    ...seen,
    ...(isToken(key) ? { key } : {}),
    ...(isCount(behindMs) ? { behindMs } : {}),
    ...(isToken(start) ? { start } : {}),
    ...(isCount(now) ? { now } : {}),
    ...(isStopped === true ? { isStopped } : {}),
    ...(words === null ? {} : { warnings: words }),
    ...(isToken(signature) ? { signature } : {}),
  };
}

/** A word as it lies in the journal, under the name of a node. */
export type KeptWord = { readonly name: string; readonly told: unknown; readonly ageMs: number };

export type WordReading = (words: readonly KeptWord[]) => NodeSeen[];

/** Reads all words of a journal. Which make no sense is said when there are others than before. */
export function createWordReading(onNotice: (line: string) => void): WordReading {
  let known: ReadonlySet<string> = new Set();
  return (words) => {
    const odd = new Set<string>();
    const read = words.flatMap(({ name, told, ageMs }) => {
      const seen = readAnnouncement(told, Number.isFinite(ageMs) ? Math.max(0, ageMs) : 0);
      if (seen?.node === name) return [seen];
      odd.add(inOneLine(name.slice(0, NAME_MAX)));
      return [];
    });
    if ([...odd].some((name) => !known.has(name))) onNotice(passedOver([...odd]));
    known = odd;
    return read.sort((left, right) => (left.node < right.node ? -1 : 1));
  };
}

const NAMED_MAX = 8;
const passedOver = (names: readonly string[]): string =>
  `what the journal has of ${names.length === 1 ? "a node" : `${names.length} nodes`} is nothing that a node of this ` +
  `version tells of itself, and is passed over: ${names.slice(0, NAMED_MAX).join(", ")}. Who else writes there?`;
