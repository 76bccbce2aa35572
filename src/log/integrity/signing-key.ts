/**
 * The key of a data directory, and what is signed with it: lines of text, never a structure.
 *
 * It is an ed25519 key in a file that only its owner can read. Checkpoints (`snapshot-rules.ts`) and heads
 * (`signed-head.ts`) are signed with it, so that nobody without it can write another history. Whoever holds the file
 * can; and whoever can write the directory can put another key there. So the key has a fingerprint, for those who check
 * to compare.
 *
 * The file of a key that signs heads says so in its first line. A log whose signed head is missing is one of an older
 * version if its key does not say so; else somebody took the signature away.
 *
 * The memory log signs with a key known to everybody, so that a simulation is the same each time.
 */
import type { KeyObject } from "node:crypto";
import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, sign, verify } from "node:crypto";
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { ifThere, OWN_FILE_MODE } from "../../std/index.ts";
import { LogFailure } from "../log.ts";

export const PRIVATE_KEY_FILE = "signing-key.pem";
const PUBLIC_KEY_FILE = "signing-key.pub.pem";
const PUBLIC_KEY_MODE = 0o644;
const SIGNS_HEADS = "This key signs the heads of the log.\n";
/** As it is written: in capitals it would be the same number, and not what was written. */
const SIGNATURE = /^[0-9a-f]{128}$/;
/** The DER frame of an ed25519 private key (RFC 8410); the 32 bytes of the seed follow it. */
const PKCS8_FRAME = Buffer.from("302e020100300506032b657004220420", "hex");

export type Verifier = {
  /** Whether this key signed the text; `signature` is in hex. */
  holds(text: string, signature: string): boolean;
  /** sha256 of the public key in hex; null if there is no key to check with. */
  readonly fingerprint: string | null;
};
export type Signer = Verifier & { sign(text: string): string };

export type Signed<Claim> = Claim & { readonly signature: string };
/** How claims of one kind are signed. */
export type Seal<Claim> = {
  sign(signer: Pick<Signer, "sign">, claim: Claim): Signed<Claim>;
  holds(verifier: Verifier, signed: Signed<Claim>): boolean;
};
/** What is signed is the text that tells a claim. */
export const sealOf = <Claim>(textOf: (claim: Claim) => string): Seal<Claim> => ({
  sign: (signer, claim) => ({ ...claim, signature: signer.sign(textOf(claim)) }),
  holds: (verifier, signed) => verifier.holds(textOf(signed), signed.signature),
});

/** A signer with a key that everybody knows. */
export function createMemorySigner(): Signer {
  const seed = Buffer.alloc(32, 7);
  return signerOf(createPrivateKey({ key: Buffer.concat([PKCS8_FRAME, seed]), format: "der", type: "pkcs8" }));
}

export type OwnKey = {
  readonly signer: Signer;
  /** Whether every head is signed that was written since this key was made, or since it was marked so. */
  readonly signsHeads: boolean;
  /** From now on it signs heads. */
  mark(): void;
};

/** The key of this data directory; made on first use. One whose public half alone is there was lost. */
export function openKey(directory: string): OwnKey {
  const path = join(directory, PRIVATE_KEY_FILE);
  const publicPath = join(directory, PUBLIC_KEY_FILE);
  const stored = ifThere(() => readFileSync(path, "utf8"));
  const hasPublic = existsSync(publicPath);
  if (stored === null && hasPublic) throw keyFailure(`${path} is missing, and ${PUBLIC_KEY_FILE} is there`);
  const privateKey = stored === null ? makeKey(path) : keyOf(path, stored, createPrivateKey);
  if (!hasPublic) writeWhole(publicPath, publicPemOf(privateKey), PUBLIC_KEY_MODE);
  return {
    signer: signerOf(privateKey),
    signsHeads: stored?.startsWith(SIGNS_HEADS) ?? false,
    mark: () => writeWhole(path, SIGNS_HEADS + pemOf(privateKey), OWN_FILE_MODE),
  };
}

function makeKey(path: string): KeyObject {
  const { privateKey } = generateKeyPairSync("ed25519");
  writeWhole(path, pemOf(privateKey), OWN_FILE_MODE);
  return privateKey;
}

const publicPemOf = (privateKey: KeyObject): string =>
  createPublicKey(privateKey).export({ type: "spki", format: "pem" }).toString();

const pemOf = (privateKey: KeyObject): string => privateKey.export({ type: "pkcs8", format: "pem" }).toString();

/** The public half of the key of this directory, for others: SPKI in base64. */
export function publicKeyIn(directory: string): string {
  const path = join(directory, PUBLIC_KEY_FILE);
  const key = keyOf(path, readFileSync(path, "utf8"), createPublicKey);
  return key.export({ type: "spki", format: "der" }).toString("base64");
}

/** What people compare a key by, of one in SPKI and base64. */
export const fingerprintOf = (key: string): string => hash("sha256", Buffer.from(key, "base64"), "hex");

/** Checks what this directory signed; the public half of the key is enough. */
export function openVerifier(directory: string): Verifier {
  const path = join(directory, PUBLIC_KEY_FILE);
  const pem = ifThere(() => readFileSync(path, "utf8"));
  if (pem === null) return { holds: () => false, fingerprint: null };
  return verifierOf(keyOf(path, pem, createPublicKey));
}

/**
 * Why a start would refuse the private half, or sign with another key than the one that checks; null if it would not,
 * or if the private half is not here or not for this reader.
 */
export function privateKeyProblem(directory: string, { fingerprint }: Verifier): string | null {
  const path = join(directory, PRIVATE_KEY_FILE);
  try {
    const stored = readFileSync(path, "utf8");
    const key = keyOf(path, stored, createPrivateKey);
    if (signerOf(key).fingerprint !== fingerprint) return `${path} is not the key whose public half lies beside it`;
    const isAsWritten = stored === pemOf(key) || stored === SIGNS_HEADS + pemOf(key);
    return isAsWritten ? null : `${path} holds its key, but is not as it was written`;
  } catch (error) {
    return error instanceof LogFailure ? error.message : null;
  }
}

/** Whatever the library finds wrong with the text, to people it is one thing: the file is not the key it should be. */
function keyOf(path: string, pem: string, create: (pem: string) => KeyObject): KeyObject {
  try {
    const key = create(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // Said below.
  }
  throw keyFailure(`${path} does not hold an ed25519 key`);
}

function keyFailure(finding: string): LogFailure {
  const advice = `Put it back from a backup. Or move ${PRIVATE_KEY_FILE} and ${PUBLIC_KEY_FILE} away: a new key`;
  const price =
    "is made then, and the log is replayed from its first event, which works unless old events were pruned.";
  return new LogFailure("corrupt", `${finding}. Nothing was changed. ${advice} ${price}`);
}

const signerOf = (privateKey: KeyObject): Signer => ({
  ...verifierOf(createPublicKey(privateKey)),
  sign: (text) => sign(null, Buffer.from(text, "utf8"), privateKey).toString("hex"),
});

const verifierOf = (publicKey: KeyObject): Verifier => ({
  fingerprint: hash("sha256", publicKey.export({ type: "spki", format: "der" }), "hex"),
  holds: (text, signature) =>
    SIGNATURE.test(signature) && verify(null, Buffer.from(text, "utf8"), publicKey, Buffer.from(signature, "hex")),
});

/** Checks with the public key of another, SPKI in base64; nothing holds by what is no such key. */
export function verifierFor(key: string): Verifier {
  try {
    return verifierOf(createPublicKey({ key: Buffer.from(key, "base64"), format: "der", type: "spki" }));
  } catch {
    return { holds: () => false, fingerprint: null };
  }
}

/** A key that is half there would be worse than none: it appears under its name only when whole. */
function writeWhole(path: string, text: string, mode: number): void {
  const temporary = `${path}.new`;
  rmSync(temporary, { force: true });
  const file = openSync(temporary, "wx", mode);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}
