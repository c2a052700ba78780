// Where sentences end: the stops of all scripts, as `dragoman/text/sentences.py` has them, and a text that
// breaks off. What closes a quotation may stand behind them.
const ENDS = /[.?!。？！।॥؟۔።։။។།…]["'”’»“‘«)\]」』]*\s*$/;

export const endsSentence = (text) => ENDS.test(text);
