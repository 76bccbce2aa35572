/**
 * Secrets do not reach a log.
 *
 * Known secrets are the values of variables whose name says so (`…_TOKEN`, `…_API_KEY`, a password, …), in the
 * worker's own environment and in what the child was given; a proxy's password counts. They are taken out of every
 * line, error and result, also as JSON would spell them. What merely looks like a well-known kind of key is taken out
 * of lines too. Words too short to be a secret are left, or `true` would vanish from every log.
 *
 * In data only text is changed: the strings in it and the names of its fields. A number stays a number, also if a
 * secret is written with the same digits, or what was JSON would be JSON no longer. Two names that become one are told
 * apart by a number, so that no value is lost.
 */
export type Redactor = {
  /** For people: known values, and what looks like a key. */
  line(text: string): string;
  /** For data: known values only, in its texts, which are well-formed afterwards. No deeper than a result may be. */
  value(value: unknown): unknown;
};

const MARK = "[redacted]";
const LENGTH_MIN = 8;
const PIECE_LENGTH_MIN = 16;
const SECRET_NAME =
  /(^|_)(KEY|APIKEY|AUTH|PAT|PASS|CREDENTIALS?)(_|$)|PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|PRIVATE_KEY/i;
const PROXY_NAME = /^(https?|all|ftp)_proxy$/i;
const LOOKS_LIKE_A_KEY = new RegExp(
  [
    "\\b(?:sk-[A-Za-z0-9_-]{16,}",
    "gh[opusr]_[A-Za-z0-9]{20,}",
    "github_pat_\\w{20,}",
    "xox[abprs]-[\\w-]{10,}",
    "AKIA[0-9A-Z]{16}",
    "glpat-[\\w-]{16,})",
  ].join("|"),
  "g",
);
const BEARER = /\b(Bearer\s+)[A-Za-z0-9._~+/-]{8,}=*/gi;

export function createRedactor(environments: readonly Readonly<Record<string, string | undefined>>[]): Redactor {
  const secrets = [...new Set(environments.flatMap(secretsOf))].sort((a, b) => b.length - a.length);
  const known = secrets.length === 0 ? null : new RegExp(secrets.map(escaped).join("|"), "g");
  const hide = (text: string): string => (known === null ? text : text.replace(known, MARK));
  return {
    line: (text) => hide(text.replace(LOOKS_LIKE_A_KEY, MARK).replace(BEARER, `$1${MARK}`)),
    value: (value) => withTexts(value, (text) => hide(text).toWellFormed()),
  };
}

/** The same data with every text in it changed, names of fields included. */
function withTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => withTexts(item, change));
  if (typeof value !== "object" || value === null) return value;
  const changed = new Map<string, unknown>();
  for (const [key, item] of Object.entries(value)) {
    const name = change(key);
    let free = name;
    for (let count = 2; changed.has(free); count++) free = `${name} ${count}`;
    changed.set(free, withTexts(item, change));
  }
  return Object.fromEntries(changed);
}

function secretsOf(environment: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(environment).flatMap(([name, value = ""]) => {
    if (PROXY_NAME.test(name)) return spellings(passwordOf(value));
    // The name of a file or a socket is not the secret in it.
    return SECRET_NAME.test(name) && !value.startsWith("/") ? spellings(value) : [];
  });
}

/** As it is, as JSON has it, and, since lines are looked at one by one, each line of a longer one. */
function spellings(secret: string): string[] {
  if (secret.trim().length < LENGTH_MIN) return [];
  const lines = secret.includes("\n") ? secret.split("\n").filter((line) => line.length >= PIECE_LENGTH_MIN) : [];
  return [secret, JSON.stringify(secret).slice(1, -1), ...lines];
}

function passwordOf(url: string): string {
  const password = URL.canParse(url) ? new URL(url).password : "";
  return password.length >= LENGTH_MIN ? password : "";
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
