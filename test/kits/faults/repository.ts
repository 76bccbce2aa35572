/**
 * A git repository with one commit, for tests, and git without the settings of the person who runs them.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext } from "node:test";
import { temporaryHome } from "./exec-world.ts";

export type Repo = { readonly home: string; readonly repo: string; readonly base: string };

export function git(directory: string, ...args: string[]): string {
  const env = {
    PATH: process.env.PATH,
    HOME: directory,
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_SYSTEM: "/dev/null",
  };
  return execFileSync("git", ["-C", directory, ...args], {
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
}

/** Made once, then copied: git takes its time. */
const template = mkdtempSync(join(tmpdir(), "drover-repo-"));
after(() => rmSync(template, { recursive: true, force: true }));
makeRepo(template);

export function createRepo(t: TestContext): Repo {
  const home = temporaryHome(t);
  const repo = join(home, "repo");
  cpSync(template, repo, { recursive: true });
  return { home, repo, base: readFileSync(join(repo, ".git", "refs", "heads", "main"), "utf8").trim() };
}

function makeRepo(repo: string): void {
  mkdirSync(join(repo, "sub"), { recursive: true });
  git(repo, "init", "--quiet", "--initial-branch=main");
  git(repo, "config", "user.email", "a@example.org");
  git(repo, "config", "user.name", "A");
  writeFileSync(join(repo, "a.txt"), "one\n");
  writeFileSync(join(repo, "sub", "b.txt"), "two\n");
  writeFileSync(join(repo, ".gitignore"), ".env\n*.log\nbuild/\n");
  git(repo, "add", ".");
  git(repo, "commit", "--quiet", "-m", "first");
}

/** In a script: a commit of whoever it is. */
export const COMMIT = "git -c user.email=a@example.org -c user.name=A commit --quiet";

export const trees = (repo: string): string[] =>
  git(repo, "worktree", "list", "--porcelain").match(/^worktree .*$/gm) ?? [];
export const branches = (repo: string): string[] => git(repo, "branch", "--format=%(refname:short)").split("\n");
