/** Sentences to begin with, by language; `word` is chosen in each, `invented` stands in the field for other words. */

export const EXAMPLES = [
  {
    language: "en",
    name: "bank",
    word: ["bank"],
    sentences: ["He sat on the bank of the river.", "The bank lent him the money.", "The bank paid its debts."],
    invented: "banks banker bankable bnak",
  },
  {
    language: "en",
    name: "can",
    word: ["can"],
    sentences: ["She can speak Chinese.", "He opened the can of beans.", "We can go home now."],
    invented: "cans cannot canned cna",
  },
  {
    language: "en",
    name: "well",
    word: ["well"],
    sentences: ["The well is deep and full of water.", "She sings very well.", "He plays well."],
    invented: "wells wellness unwell wlel",
  },
  {
    language: "zh",
    name: "苹果",
    word: ["苹", "果"],
    sentences: ["她从篮子里拿出一个红苹果。", "苹果公司发布了新手机。", "树上结满了苹果。"],
    invented: "苹果 果 水果 苹国",
  },
  {
    language: "zh",
    name: "台",
    word: ["台"],
    sentences: ["她买了一台新电脑。", "台风来了。", "他有三台电脑。"],
    invented: "台湾 台风 抬 电台",
  },
];

/** The examples, those in the model's language first. */
export const examplesFor = (language) =>
  [...EXAMPLES].sort((a, b) => (b.language === language) - (a.language === language));
