/**
 * `drover completion bash|zsh|fish`: prints the script that makes the Tab key work.
 */

import { EXIT } from "../shell/problem.ts";
import type { VerbBody } from "../shell/verb.ts";
import { completionScript, SHELLS, type Shell } from "./completion-script.ts";

export const completionVerb: VerbBody<never> = {
  takes: [{ name: "<shell>", about: "which shell", choices: SHELLS }],
  examples: [
    ['eval "$(drover completion bash)"', "in ~/.bashrc"],
    ['eval "$(drover completion zsh)"', "in ~/.zshrc, after compinit"],
    ["drover completion fish > ~/.config/fish/completions/drover.fish", "once"],
  ],
  run: async ({ args, terminal, program }) => {
    const { root, load } = await program();
    await Promise.all(root.commands.map(load));
    terminal.out(completionScript(args[0] as Shell, root));
    return EXIT.ok;
  },
};
