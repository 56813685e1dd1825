// The texts of the page, and how they are looked up. No other module contains texts.

/** By language and key; empty here, filled from regard/texts where the modules are bundled or served. */
export const TEXTS = { en: {}, zh: {} };

const spoken = { language: "en" };

/** The language that is used now. */
export const spokenLanguage = () => spoken.language;

/** Chooses the language that is used from now on. */
export function speak(language) {
  spoken.language = language;
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
}

/** A text by its key, with {names} filled in. */
export function say(key, values = {}) {
  const text = TEXTS[spoken.language][key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** The name of a statistic; one without a text here is shown by its key. */
export function statisticName(name) {
  return TEXTS[spoken.language][`statistic.${name}`] ?? name.replaceAll("_", " ");
}

/** What a statistic means, or "". */
export function statisticMeaning(name) {
  return TEXTS[spoken.language][`about.${name}`] ?? "";
}
