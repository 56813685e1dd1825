// The small buttons in the upper right corner, which the page, the map and the app share.

import { press } from "./elements.js";
import { say } from "./languages.js";
import { isDark } from "./theme.js";

/** A button whose label says what it does. */
export function tool(text, label, act, attributes = {}) {
  return press(text, act, { "aria-label": label, title: label, ...attributes });
}

/** Switches to the other language. */
export function languageTool(language, choose) {
  const [other, name, tag] = language === "zh" ? ["en", "English", "en"] : ["zh", "中文", "zh-CN"];
  return tool(name, name, () => choose({ language: other }), { lang: tag, translate: "no" });
}

/** Switches between light and dark. */
export function themeTool(theme, choose) {
  const other = isDark(theme) ? "light" : "dark";
  return tool("◐", `${say("theme")}: ${say(`theme.${other}`)}`, () => choose({ theme: other }));
}

/** Shows the controls on small screens, where they are folded away. */
export function foldTool(bar) {
  const button = tool(
    "≡",
    say("controls"),
    () => button.setAttribute("aria-expanded", String(bar.classList.toggle("unfolded"))),
    { class: "quiet fold", "aria-expanded": "false" },
  );
  return button;
}
