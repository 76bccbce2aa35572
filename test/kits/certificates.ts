/**
 * Certificates for tests: an authority of our own, and what it signs for 127.0.0.1, made by openssl.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isMissing } from "./optional-tool.ts";

export const opensslMissing: string | false = isMissing("openssl", "openssl", "version");

export type Signed = { readonly cert: string; readonly key: string };
/** Paths of PEM files. */
export type Certificates = { readonly ca: string; readonly server: Signed; readonly client: Signed };

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];

export function makeCertificates(directory: string): Certificates {
  const at = (name: string): string => join(directory, name);
  const openssl = (...args: readonly string[]): void => void execFileSync("openssl", args, { stdio: "pipe" });
  const subject = (name: string): string[] => ["-subj", `/O=${name}`];
  openssl(
    "req",
    "-x509",
    ...NEW_KEY,
    ...subject("authority"),
    "-days",
    "2",
    "-keyout",
    at("ca.key"),
    "-out",
    at("ca.pem"),
  );
  writeFileSync(at("names"), "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n");
  const signed = (name: string): Signed => {
    const [cert, key, request] = [at(`${name}.pem`), at(`${name}.key`), at(`${name}.csr`)];
    openssl("req", ...NEW_KEY, ...subject(name), "-keyout", key, "-out", request);
    const by = ["-CA", at("ca.pem"), "-CAkey", at("ca.key"), "-CAcreateserial"];
    openssl("x509", "-req", "-in", request, ...by, "-days", "2", "-extfile", at("names"), "-out", cert);
    return { cert, key };
  };
  return { ca: at("ca.pem"), server: signed("server"), client: signed("client") };
}
