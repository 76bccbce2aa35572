/**
 * Where the server wants a token, the page asks for one.
 */
import type { JSX } from "preact";
import { logIn, session } from "../data/ask.ts";
import { useStore } from "../data/store.ts";
import { Mark } from "../parts/icons.tsx";

export function Login(): JSX.Element {
  const { why } = useStore(session);
  return (
    <main class="login">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          // As the field has it now: a browser may have filled it in without a word.
          const token = String(new FormData(event.currentTarget).get("token") ?? "").trim();
          if (token !== "") logIn(token);
        }}
      >
        <h1 class="brand">
          <Mark />
          <span>Drover</span>
        </h1>
        <label class="field">
          <span>Token</span>
          <input class="input" id="token" name="token" type="password" autocomplete="off" autofocus />
          <span class="hint">This server wants one; its operator has it. It is kept until this tab is closed.</span>
        </label>
        {why === "" ? null : (
          <p class="failure" role="alert">
            {why}
          </p>
        )}
        <button type="submit" class="button is-main">
          Log in
        </button>
      </form>
    </main>
  );
}
