// The play view: sit down against a loaded agent. Every rule and every amount comes from the server.

import { address, ask, card, choice, complain, el, mixBar, mixWords, percent, signed, tell, whole } from "/assets/dom.js";
import { felt } from "/assets/felt.js";

let table = null; // the last view of the table
let hint = null;
let luck = null;
let amount = null;
let setting = null;
let waiting = false;

export async function show(place, { about, query, go, current }) {
  setting ??= {};
  const view = { about, place, go };
  if (query.table && table?.table !== query.table) {
    try {
      take(await ask(`tables/${query.table}`));
    } catch {
      table = null;
    }
  }
  if (!query.table) table = null;
  if (!current()) return undefined;
  draw(view);
  const keys = (event) => pressed(event, view);
  document.removeEventListener("keydown", show.keys ?? keys);
  show.keys = keys;
  document.addEventListener("keydown", keys);
  return () => document.removeEventListener("keydown", keys);
}

function take(view) {
  if (!table || table.table !== view.table || table.hand !== view.hand) luck = null;
  table = view;
  hint = null;
  amount = view.options?.raise?.low ?? null;
}

async function change(view, path, body) {
  if (waiting) return;
  waiting = true;
  try {
    take(await tell(path, body));
    draw(view);
  } catch (error) {
    complain(error.message);
  } finally {
    waiting = false;
  }
}

function pressed(event, view) {
  if (event.altKey || event.ctrlKey || event.metaKey || !table || location.pathname !== "/play") return;
  if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) && event.key !== "Enter") return;
  const key = event.key.toLowerCase();
  const button = view.place.querySelector(`[data-key="${CSS.escape(key)}"]`);
  const onButton = event.key === "Enter" && event.target.tagName === "BUTTON";
  if (!button || button.disabled || onButton) return;
  event.preventDefault();
  button.click();
}

function draw(view) {
  const focus = document.activeElement?.dataset?.key;
  view.place.replaceChildren(el("h1", { className: "hidden" }, "Play"), table ? seated(view) : lobby(view));
  if (focus) view.place.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
}

/** Choose a game and who sits there. */
function lobby(view) {
  const { about, go } = view;
  const game = about.games.find((one) => one.name === setting.game) ?? about.games[0];
  const agents = about.agents.filter((one) => one.games.includes(game.name)).map((one) => [one.name, one.name]);
  const count = game.players - 1;
  const chosen = Array.from({ length: count }, (_, i) => setting.agents?.[i] && agents.some(([name]) => name === setting.agents[i]) ? setting.agents[i] : agents[0]?.[0]);
  const again = (changed) => { setting = { ...setting, ...changed }; draw(view); };
  const sit = async () => {
    try {
      take(await tell("tables", { game: game.name, agents: chosen }));
      go(address("play", { table: table.table }));
    } catch (error) {
      complain(error.message);
    }
  };
  return el("section", { className: "lobby" }, el("h2", {}, "Sit down"),
    el("p", {}, `Play against a loaded agent. Finished hands are kept as an ACPC log in ${about.save}; it can be ingested like any other.`),
    el("div", { className: "controls" }, choice("Game", about.games.map((one) => [one.name, one.title]), game.name, (value) => again({ game: value, agents: null })),
      chosen.map((name, i) => choice(count > 1 ? `Seat ${i + 2}` : "Against", agents, name, (value) => { const list = [...chosen]; list[i] = value; again({ agents: list, game: game.name }); }))),
    el("button", { type: "button", className: "primary", disabled: !agents.length, on: { click: sit } }, "Deal the first hand"));
}

function seated(view) {
  const { go, about } = view;
  const game = about.games.find((one) => one.name === table.game);
  const result = table.result;
  const interval = result.ci95 === null ? "" : ` ± ${whole(result.ci95)}`;
  const score = el("p", { className: "score", role: "status" }, el("b", {}, `${whole(result.hands)} ${result.hands === 1 ? "hand" : "hands"}`), ` · ${signed(result.chips)} chips`,
    result.hands ? ` · ${signed(result.mbb_per_hand)}${interval} ${result.unit}` : "",
    luck ? ` · without the luck of the cards ${luck.adjusted_mbb_per_hand === null ? "unknown" : `${signed(luck.adjusted_mbb_per_hand)} ± ${whole(luck.adjusted_ci95)}`}` : "");
  const top = el("div", { className: "tablebar" }, score,
    result.hands > 1 ? el("button", { type: "button", className: "quiet", on: { click: async () => { luck = await ask(`tables/${table.table}/luck`); draw(view); } } }, "Without luck") : null,
    el("button", { type: "button", className: "quiet", on: { click: () => go("/play") } }, "Leave the table"));
  const notes = table.seats.map((one) => one.me && table.holding ? table.holding : "");
  const drawn = felt({ ...table, slots: game.holdem ? 5 : table.board.length }, notes);
  const left = el("div", {}, drawn, table.failure ? failed(view) : null, table.finished ? over(view) : act(view));
  const right = el("div", { className: "side" }, hint ? hints() : null, moves(), table.review ? review() : null, el("p", { className: "said" }, `Saved in ${table.log}`));
  return el("div", {}, top, el("div", { className: "columns table" }, left, right));
}

const button = (key, text, work, { look = "", disabled = false } = {}) =>
  el("button", { type: "button", className: look, disabled, data: { key }, ariaKeyShortcuts: key, on: { click: work } }, text, " ", el("kbd", {}, key === "enter" ? "⏎" : key));

/** Buttons, and in no-limit games the slider and usual sizes. */
function act(view) {
  const options = table.options;
  if (!options) return el("div", { className: "act" });
  const send = (action, size = "") => change(view, `tables/${table.table}/act`, { action, amount: String(size), hand: table.hand });
  const raise = options.raise;
  const verb = raise?.bet ? "Bet" : "Raise to";
  const buttons = [
    button("f", "Fold", () => send("f"), { disabled: !options.fold }),
    button("c", options.call[0].toUpperCase() + options.call.slice(1), () => send("c")),
    raise ? button("r", `${verb} ${whole(raise.fixed ? raise.low : amount)}`, () => raise.fixed ? send("r") : send("r", amount), { look: "primary" })
      : button("r", "Raise", () => {}, { disabled: true }),
    button("h", "Hint", async () => { hint = await ask(`tables/${table.table}/hint`); draw(view); }, { look: "quiet" }),
  ];
  return el("div", { className: "act" }, el("div", { className: "buttons", role: "group", ariaLabel: "Your action" }, buttons),
    raise && !raise.fixed && raise.high > raise.low ? sizes(view, raise, verb) : null);
}

function sizes(view, raise, verb) {
  const set = (value, move = true) => {
    amount = Math.max(raise.low, Math.min(raise.high, Math.round(value)));
    if (move) slider.value = String(amount);
    number.value = String(amount);
    const primary = view.place.querySelector('[data-key="r"]');
    primary.firstChild.textContent = `${verb} ${whole(amount)}`;
  };
  const slider = el("input", { type: "range", min: raise.low, max: raise.high, step: 1, ariaLabel: "Amount", on: { input: () => set(Number(slider.value), false) } });
  slider.value = String(amount);
  const number = el("input", { type: "number", min: raise.low, max: raise.high, inputMode: "numeric", ariaLabel: "Amount in chips", on: { change: () => set(Number(number.value) || raise.low) } });
  number.value = String(amount);
  const words = { s: "¼ pot", h: "½ pot", p: "pot", o: "2 pots", a: "all in" };
  const usual = raise.sizes.map((size, i) => button(String(i + 1), words[size.label] ?? size.text, () => set(size.amount), { look: "quiet" }));
  return el("div", { className: "sizes" }, el("div", { className: "slide" }, slider, number), el("div", { className: "buttons" }, usual));
}

/** Said instead of an agent's action: the hand is as it was before. */
function failed(view) {
  return el("div", { className: "act" }, el("p", { role: "alert" }, `${table.failure} – nothing was changed: try again, or go on.`),
    table.finished ? null : el("div", { className: "buttons" }, nextHand(view)));
}

const nextHand = (view) => button("enter", "Next hand", () => change(view, `tables/${table.table}/next`), { look: "primary" });

function over(view) {
  const me = table.seats.find((one) => one.me);
  const said = me.won > 0 ? `You win ${whole(me.won)}.` : me.won < 0 ? `You lose ${whole(-me.won)}.` : "Nobody wins.";
  return el("div", { className: "act" }, el("p", { className: "over", role: "status" }, said),
    el("div", { className: "buttons" }, nextHand(view)));
}

function moves() {
  const items = [];
  let street = null;
  for (const move of table.moves) {
    if (move.street !== street) items.push(el("li", { className: "street" }, move.street));
    street = move.street;
    items.push(el("li", { className: move.mine ? "mine" : "" }, move.text));
  }
  return el("section", {}, el("h2", {}, `Hand ${table.hand + 1}`), el("ol", { className: "moves", ariaLive: "polite" }, items));
}

function hints() {
  const labels = hint.labels.map((one) => one.text);
  return el("section", { className: "hint" }, el("h2", {}, "Hint"),
    hint.equity !== null ? el("p", {}, `Your equity: ${percent(hint.equity)} against any cards`,
      hint.against_range !== null ? `, ${percent(hint.against_range)} against what this agent would hold.` : ".") : null,
    hint.mixes.map(({ agent, mix }) => el("div", {}, el("div", { className: "said" }, `${agent} would: ${mixWords(mix, labels)}`), mixBar(mix, labels))));
}

function review() {
  const { decisions, names, equities } = table.review;
  const rows = decisions.map((one) => {
    const labels = one.labels.map((label) => label.text);
    return el("div", { className: "decision" }, el("div", {}, one.cards.map((text) => card(text, "small")), " ", el("b", {}, one.text), el("small", { className: "soft" }, ` ${one.street}`)),
      mixBar(one.mix, labels), el("div", { className: "said" }, mixWords(one.mix, labels, 1)));
  });
  return el("section", {}, el("h2", {}, "How likely it was"), rows.length ? rows : el("p", { className: "said" }, "Nobody else acted."),
    el("h2", {}, "Equity, all cards known"), el("div", { className: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Street"), names.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, equities.map((row) => el("tr", {}, el("td", {}, row.street), row.equities.map((share) => el("td", {}, percent(share)))))))));
}
