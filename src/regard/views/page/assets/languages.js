// Every word of the page, in each language. Nothing else in these modules speaks.

export const TEXTS = {
  en: {
    "view.overview": "Overview", "view.lines": "Lines", "view.matrix": "Matrix", "view.heads": "Heads", "view.steps": "Steps",
    "views": "Views", "controls": "Controls",
    "kind": "Attention", "kind.encoder": "Encoder", "kind.decoder": "Decoder", "kind.cross": "Cross", "kind.all": "All kinds",
    "run": "Run", "run.n": "Run {run}",
    "layer": "Layer", "layer.n": "Layer {layer}", "layer.before": "Layer before", "layer.next": "Next layer",
    "head": "Head", "head.n": "Head {head}", "head.before": "Head before", "head.next": "Next head",
    "pair": "Sentences", "pair.all": "All", "pair.aa": "A → A", "pair.bb": "B → B", "pair.ab": "A → B", "pair.ba": "B → A",
    "special": "Hide special tokens", "words": "Merge word pieces",
    "sinks": "Sinks", "sinks.show": "Shown", "sinks.first": "First hidden", "sinks.special": "Special hidden",
    "removed": "{share} removed", "removed.how": "Mean weight on the hidden keys; what is left of each row is divided by one minus it",
    "removed.row": "{share} of this row removed",
    "scale": "Scale", "scale.linear": "Linear", "scale.log": "Log",
    "palette": "Colours", "palette.blue": "Blue", "palette.viridis": "Viridis", "palette.cividis": "Cividis (colour-blind safe)",
    "theme": "Light or dark", "theme.light": "Light", "theme.dark": "Dark",
    "language": "Language", "help": "Help", "close": "Close",
    "export.svg": "Export this view as SVG", "export.png": "Export this view as PNG",
    "size": "{queries} queries × {keys} keys",
    "error": "weights within {error} of exact",
    "dense": "recorded weights",
    "overview.layers": "By layer", "overview.open": "Layer {layer}, head {head}: open",
    "overview.kind": "{kind} attention", "overview.heads": "{layers} layers · {heads} heads",
    "order": "Order", "order.down": "Greatest first", "order.up": "Least first",
    "lines.heads": "Heads shown", "lines.all": "All", "lines.none": "None",
    "lines.hint": "Point at a token to see its lines; click to pin it. Click a head to switch it, twice to see it alone.",
    "lines.queries": "Queries", "lines.keys": "Keys",
    "lines.above": "{share} above", "lines.below": "{share} below",
    "matrix.label": "Matrix of weights, {queries} rows of queries by {keys} columns of keys",
    "matrix.hint": "Wheel to zoom, drag to move, click to pin.",
    "matrix.fit": "Fit", "matrix.in": "Zoom in", "matrix.out": "Zoom out",
    "matrix.query": "Query", "matrix.key": "Key", "matrix.weight": "Weight",
    "matrix.greatest": "greatest of {count} pairs here",
    "matrix.masked": "masked",
    "heads.filter": "Filter", "heads.filter.hint": "layer 3, name…",
    "heads.count": "{shown} of {all} heads", "heads.name": "Module", "heads.none": "No head fits this filter.",
    "heads.note": "Each number is the mean over the queries that see something.",
    "steps.query": "Query token", "steps.before": "Token before", "steps.next": "Next token",
    "steps.dense": "The model gave its weights directly, without queries and keys. There is nothing to recompute here; the other views show the weights.",
    "steps.query.vector": "The query vector", "steps.scores": "A score for every key", "steps.output": "The output: values weighted and added",
    "steps.key": "Key", "steps.dot": "Dot product", "steps.scaled": "Scaled", "steps.capped": "Capped", "steps.bias": "Bias",
    "steps.score": "Score", "steps.weight": "Weight", "steps.value": "Weighted value",
    "steps.masked": "masked", "steps.sink": "Learned sink", "steps.total": "Total",
    "steps.more": "Show {count} more keys ({share})", "steps.fewer": "Show the strongest only",
    "steps.numbers": "All numbers",
    "steps.product": "Dot product with the query, channel by channel", "steps.values": "Its value",
    "steps.novalues": "This recording has no values. Record with watch(model, values=True) to see the output.",
    "steps.nothing": "This query may see no key. Its weights and its output are 0.",
    "steps.lens": "Steps show every token as the model saw it; hiding and merging do not apply here.",
    "steps.from": "lse = log Σ exp(score): one number for this query",
    "statistic.entropy": "Entropy", "statistic.peak": "Peak", "statistic.self_weight": "To itself", "statistic.previous_weight": "To previous",
    "statistic.effect": "Effect", "about.effect": "What changes in the answer without this head", "statistic.relative_entropy": "Evenness", "statistic.received_peak": "Most received", "statistic.first_weight": "To first", "statistic.distance": "Distance", "statistic.visible": "Visible",
    "about.entropy": "How spread out the weights are, in nats", "about.peak": "The greatest weight of a query",
    "about.self_weight": "Weight on the token itself", "about.previous_weight": "Weight on the token before", "about.relative_entropy": "Entropy over the greatest it could be: 0, one key takes all; 1, all alike",
    "about.received_peak": "The greatest share of all attention that one key takes",
    "about.first_weight": "Weight on the first token", "about.distance": "Mean distance to the keys, in tokens", "about.visible": "How many keys a query may see",
    "help.title": "Keys and gestures",
    "help.views": "Open a view", "help.layers": "Layer before, layer after", "help.heads": "Head before, head after",
    "help.tokens": "Pin the neighbouring query or key", "help.zoom": "Zoom the matrix in, out, fit", "help.unpin": "Unpin; close this",
    "help.wheel": "Wheel, drag, pinch", "help.gestures": "Zoom and move the matrix",
    "help.click": "Click, double click", "help.headclick": "Switch a head of the lines; see it alone", "help.this": "This help",
    "help.formula": "For query i and key j the weight is", "help.about": "This page carries the queries, the keys and one number per row. The weights you look at are computed here, in your browser; nothing is fetched from anywhere.",
  },
  zh: {
    "view.overview": "总览", "view.lines": "连线", "view.matrix": "矩阵", "view.heads": "注意力头", "view.steps": "步骤",
    "views": "视图", "controls": "控制",
    "kind": "类型", "kind.encoder": "编码器", "kind.decoder": "解码器", "kind.cross": "交叉", "kind.all": "全部类型",
    "run": "运行", "run.n": "第 {run} 次运行",
    "layer": "层", "layer.n": "第 {layer} 层", "layer.before": "上一层", "layer.next": "下一层",
    "head": "头", "head.n": "头 {head}", "head.before": "上一个头", "head.next": "下一个头",
    "pair": "句子", "pair.all": "全部", "pair.aa": "A → A", "pair.bb": "B → B", "pair.ab": "A → B", "pair.ba": "B → A",
    "special": "隐藏特殊词元", "words": "合并词片",
    "sinks": "汇聚点", "sinks.show": "显示", "sinks.first": "隐藏首个", "sinks.special": "隐藏特殊",
    "removed": "已移除 {share}", "removed.how": "被隐藏的键所占权重的平均；每行余下的权重除以一减去该行移除的份额",
    "removed.row": "此行移除 {share}",
    "scale": "刻度", "scale.linear": "线性", "scale.log": "对数",
    "palette": "配色", "palette.blue": "蓝", "palette.viridis": "翠黄", "palette.cividis": "蓝黄（色盲友好）",
    "theme": "明暗", "theme.light": "浅色", "theme.dark": "深色",
    "language": "语言", "help": "帮助", "close": "关闭",
    "export.svg": "将当前视图导出为 SVG", "export.png": "将当前视图导出为 PNG",
    "size": "{queries} 个查询 × {keys} 个键",
    "error": "权重误差不超过 {error}",
    "dense": "直接记录的权重",
    "overview.layers": "按层", "overview.open": "打开第 {layer} 层头 {head}",
    "overview.kind": "{kind}注意力", "overview.heads": "{layers} 层 · {heads} 个头",
    "order": "排序", "order.down": "从大到小", "order.up": "从小到大",
    "lines.heads": "显示的头", "lines.all": "全选", "lines.none": "清空",
    "lines.hint": "指向词元可看它的连线，单击可固定。单击某个头开关它，双击只看它。",
    "lines.queries": "查询", "lines.keys": "键",
    "lines.above": "上方 {share}", "lines.below": "下方 {share}",
    "matrix.label": "权重矩阵：{queries} 行查询，{keys} 列键",
    "matrix.hint": "滚轮缩放，拖动平移，单击固定。",
    "matrix.fit": "全图", "matrix.in": "放大", "matrix.out": "缩小",
    "matrix.query": "查询", "matrix.key": "键", "matrix.weight": "权重",
    "matrix.greatest": "此处 {count} 对中的最大值",
    "matrix.masked": "被遮蔽",
    "heads.filter": "筛选", "heads.filter.hint": "层号、模块名……",
    "heads.count": "{all} 个头中的 {shown} 个", "heads.name": "模块", "heads.none": "没有符合条件的头。",
    "heads.note": "每个数都是在能看到键的查询上取的平均。",
    "steps.query": "查询词元", "steps.before": "上一个词元", "steps.next": "下一个词元",
    "steps.dense": "这个模型直接给出了权重，没有记录查询和键，所以无法在此重算；其他视图可以查看这些权重。",
    "steps.query.vector": "查询向量", "steps.scores": "给每个键打分", "steps.output": "输出：加权后的值相加",
    "steps.key": "键", "steps.dot": "点积", "steps.scaled": "缩放", "steps.capped": "截顶", "steps.bias": "偏置",
    "steps.score": "分数", "steps.weight": "权重", "steps.value": "加权的值",
    "steps.masked": "被遮蔽", "steps.sink": "可学习的汇聚项", "steps.total": "合计",
    "steps.more": "再显示 {count} 个键（{share}）", "steps.fewer": "只显示最强的键",
    "steps.numbers": "全部数值",
    "steps.product": "与查询的点积，逐通道相乘", "steps.values": "它的值",
    "steps.novalues": "这份记录没有保存值向量。用 watch(model, values=True) 记录即可看到输出。",
    "steps.nothing": "这个查询看不到任何键，权重与输出都是 0。",
    "steps.lens": "步骤视图按模型所见显示每个词元，隐藏与合并在此不起作用。",
    "steps.from": "lse = log Σ exp(分数)：每个查询一个数",
    "statistic.entropy": "熵", "statistic.peak": "峰值", "statistic.self_weight": "看自己", "statistic.previous_weight": "看前一个",
    "statistic.effect": "作用", "about.effect": "去掉这个头后答案的变化", "statistic.relative_entropy": "均匀度", "statistic.received_peak": "最受关注", "statistic.first_weight": "看首个", "statistic.distance": "距离", "statistic.visible": "可见数",
    "about.entropy": "权重的分散程度，单位奈特", "about.peak": "一个查询的最大权重",
    "about.self_weight": "落在词元自身上的权重", "about.previous_weight": "落在前一个词元上的权重", "about.relative_entropy": "熵与可能的最大值之比：0 为一键独占，1 为均分",
    "about.received_peak": "单个键所得占全部注意力的最大份额",
    "about.first_weight": "落在首个词元上的权重", "about.distance": "到各键的平均距离，以词元计", "about.visible": "一个查询能看到多少个键",
    "help.title": "按键与手势",
    "help.views": "打开视图", "help.layers": "上一层、下一层", "help.heads": "上一个头、下一个头",
    "help.tokens": "固定相邻的查询或键", "help.zoom": "矩阵放大、缩小、全图", "help.unpin": "取消固定；关闭此窗口",
    "help.wheel": "滚轮、拖动、双指", "help.gestures": "缩放和移动矩阵",
    "help.click": "单击、双击", "help.headclick": "在连线视图中开关一个头；只看它", "help.this": "显示帮助",
    "help.formula": "查询 i 对键 j 的权重是", "help.about": "本页带有查询、键和每行一个数；您看到的权重都在浏览器中当场算出，不从任何地方取数据。",
  },
};

const spoken = { language: "en" };

/** The language that everything is said in now. */
export const spokenLanguage = () => spoken.language;

/** Chooses the language of everything that is said from now on. */
export function speak(language) {
  spoken.language = language;
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
}

/** A text by its key, with {names} filled in. */
export function say(key, values = {}) {
  const text = TEXTS[spoken.language][key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** The name of a statistic; one that has no word here is shown as it is called. */
export function statisticName(name) {
  return TEXTS[spoken.language][`statistic.${name}`] ?? name.replaceAll("_", " ");
}

/** What a statistic means, or "". */
export function statisticMeaning(name) {
  return TEXTS[spoken.language][`about.${name}`] ?? "";
}
