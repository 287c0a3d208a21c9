// A drawn table: seats, cards, chips and the pot; used for playing and for replaying hands.

import { card, el, whole } from "/assets/dom.js";

/** One seat: name, cards, chips in front of it, and what it has left. */
function seat(one, { note = "" } = {}) {
  const cards = one.hidden ? Array.from({ length: one.hidden }, () => card(null)) : one.cards.map((text) => card(text));
  const state = [one.me ? "me" : "", one.folded ? "folded" : "", one.acting ? "acting" : "", one.won > 0 ? "winner" : ""].join(" ");
  const chips = one.bet ? el("span", { className: "chips" }, el("i"), whole(one.bet)) : el("span", { className: "chips none" });
  const said = one.folded ? "folded" : one.stack === null || one.stack === undefined ? "" : `${whole(one.stack)} left`;
  const won = one.won ? `${one.won > 0 ? "+" : "−"}${whole(Math.abs(one.won))}` : "";
  return el("div", { className: `seat ${state}`, role: "group", ariaLabel: `${one.name}, ${one.position}` },
    el("div", { className: "who" }, el("b", {}, one.name), el("small", {}, one.position)),
    el("div", { className: "hole" }, cards),
    el("div", { className: "left" }, el("small", {}, [said, won, note].filter(Boolean).join(" · ") || "\u00a0")),
    chips);
}

/** The whole table; `notes` are texts under the seats, by position. */
export function felt({ seats, board, pot, street, slots = 5 }, notes = []) {
  const others = [], mine = [];
  seats.forEach((one, i) => (one.me ? mine : others).push(seat(one, { note: notes[i] ?? "" })));
  const places = Array.from({ length: Math.max(slots, board.length) }, (_, i) => board[i] ? card(board[i]) : el("span", { className: "card slot-empty", ariaHidden: "true" }, "\u00a0"));
  return el("div", { className: "felt" }, el("div", { className: "row" }, others),
    el("div", { className: "middle" }, el("div", { className: "pot" }, el("small", {}, street), el("b", {}, `Pot ${whole(pot)}`)),
      slots ? el("div", { className: "shared", role: "group", ariaLabel: "Board" }, places) : null),
    el("div", { className: "row" }, mine));
}
