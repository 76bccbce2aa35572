/**
 * Where the server is and how a caller shows who it is.
 */
import { ClientError } from "./client-error.ts";

/** Where a server is that was told nothing else. */
export const DEFAULT_URL = "http://127.0.0.1:4747";

export type Address = { readonly base: string; readonly token: string | null };

/** The environment is read here and nowhere else: `DROVER_URL` and `DROVER_TOKEN`. An empty variable is none. */
export function addressFromEnv(env: Readonly<Record<string, string | undefined>>): { url?: string; token?: string } {
  const { DROVER_URL: url = "", DROVER_TOKEN: token = "" } = env;
  return { ...(url === "" ? {} : { url }), ...(token === "" ? {} : { token }) };
}

export function readAddress(url: string, token: string | undefined): Address {
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol))
    throw new ClientError("bad_request", `url is ${JSON.stringify(url)}, and must be an http or https URL`);
  if (parsed.username !== "" || parsed.password !== "")
    throw new ClientError("bad_request", "url must not hold a user or password; give the token as token");
  // What a header cannot hold would come back as an error that shows the token.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new ClientError("bad_request", "token must be printable ASCII without blanks");
  return { base: `${parsed.origin}${parsed.pathname.replace(/\/+$/, "")}`, token: token ?? null };
}

/** The path of a call with its parameters, and the query behind it. A list is its parameter several times. */
export function targetOf(path: string, params: object, query: object): string {
  const values = new Map<string, unknown>(Object.entries(params));
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, key: string) => encodeURIComponent(String(values.get(key))));
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  const told = pairs.flatMap(([key, value]) =>
    [value].flat().map((one) => `${encodeURIComponent(key)}=${encodeURIComponent(String(one))}`),
  );
  return told.length === 0 ? filled : `${filled}?${told.join("&")}`;
}
