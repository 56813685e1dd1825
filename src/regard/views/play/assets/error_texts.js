// The Chinese of errors. Their English is where they arise, as in the library.

const chineseErrors = { table: {} };

/** Gives the page the Chinese of its errors, by their English templates. */
export function learnErrors(table) {
  chineseErrors.table = table;
}

/** An error's template in a language; one without Chinese stays English. */
export function errorTemplate(template, language) {
  return language === "zh" ? (chineseErrors.table[template] ?? template) : template;
}
