// The hands view: a list behind filters, and one hand replayed at a drawn table.

import { address, ask, card, choice, el, mixBar, mixWords, percent, signed, whole } from "/assets/dom.js";
import { felt } from "/assets/felt.js";

const FILTERS = ["game", "player", "opponent", "street", "betting", "least_pot", "most_pot", "made", "start", "agent", "sort", "from"];
let list = null;
let listed = "";
let replayed = null;
let step = 0;
let hidden = false;

export async function show(place, { about, query, go, current }) {
  if (!about.data) {
    place.replaceChildren(el("h1", { className: "hidden" }, "Hands"), el("p", { className: "soft empty" }, "No dataset is loaded: start the server with --data DIR to look at the hands of logs."));
    return undefined;
  }
  const asked = Object.fromEntries(FILTERS.filter((name) => query[name]).map((name) => [name, query[name]]));
  const key = JSON.stringify(asked);
  if (key !== listed || list?.reading || list?.comparing) {
    list = await ask("hands", asked);
    listed = key;
  }
  const again = (delay) => setTimeout(() => current() && location.pathname === "/hands" && go(location.pathname + location.search, { replace: true }), delay);
  if (list.reading && !list.rows) {
    place.replaceChildren(el("h1", { className: "hidden" }, "Hands"), el("p", { className: "soft empty", role: "status" }, `${list.reading.title} … ${list.reading.total ? `${whole(list.reading.done)} of ${whole(list.reading.total)}` : ""}`));
    again(500);
    return undefined;
  }
  if (list.comparing || list.reading) again(1000);
  if (query.hand !== undefined && (String(replayed?.id) !== query.hand || replayed?.player !== (asked.player ?? ""))) {
    replayed = await ask(`hands/${query.hand}`, { game: asked.game, player: asked.player });
    replayed.player = asked.player ?? "";
  }
  if (query.hand === undefined) replayed = null;
  step = Math.max(0, Math.min(Number(query.step ?? 0) || 0, (replayed?.steps?.length ?? 1) - 1));
  if (!current()) return undefined;
  const view = { about, asked, go, place };
  draw(view);
  const keys = (event) => pressed(event, view);
  document.removeEventListener("keydown", show.keys ?? keys);
  show.keys = keys;
  document.addEventListener("keydown", keys);
  return () => document.removeEventListener("keydown", keys);
}

const here = (asked, change = {}) => address("hands", { ...asked, ...change });

function pressed(event, { asked, go }) {
  if (!replayed || event.altKey || event.ctrlKey || event.metaKey || ["INPUT", "SELECT"].includes(event.target.tagName)) return;
  const last = replayed.steps.length - 1;
  const moves = { ArrowRight: step + 1, ArrowLeft: step - 1, Home: 0, End: last };
  if (event.key in moves) {
    event.preventDefault();
    const next = Math.max(0, Math.min(last, moves[event.key]));
    if (next !== step) go(here(asked, { hand: replayed.id, step: next }), { replace: true });
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const at = list.rows.findIndex((row) => row.id === replayed.id) + (event.key === "ArrowDown" ? 1 : -1);
    if (!list.rows[at]) return;
    event.preventDefault();
    go(here(asked, { hand: list.rows[at].id, step: 0 }));
  }
}

function draw(view) {
  const focus = document.activeElement?.dataset?.focus;
  view.place.replaceChildren(el("h1", { className: "hidden" }, "Hands"), filters(view),
    el("div", { className: "columns hands" }, el("div", {}, table(view)), el("div", { className: "side" }, replayed ? replay(view) : el("p", { className: "soft empty" }, "Choose a hand to replay it."))));
  if (focus) view.place.querySelector(`[data-focus="${focus}"]`)?.focus();
  view.place.querySelector("tr[aria-current]")?.scrollIntoView({ block: "nearest" });
}

function filters({ about, asked, go }) {
  const set = (change) => go(here(asked, { ...change, from: "", }));
  const everybody = [["", "anybody"], ...list.players.map((name) => [name, name])];
  const agents = about.agents.filter((one) => one.games.includes(list.game)).map((one) => [one.name, one.name]);
  const field = (label, name, options = {}) => {
    const input = el("input", { value: asked[name] ?? "", ...options, on: { change: () => set({ [name]: input.value.trim() }) } });
    return el("label", { className: "field short" }, el("span", {}, label), input);
  };
  const compare = (agent) => {
    const mine = about.agents.find((one) => one.name === agent);
    const player = asked.player || mine?.imitates.find((name) => list.players.includes(name)) || list.players[0];
    set({ agent, player: agent ? player : asked.player, sort: agent ? "disagreement" : asked.sort === "disagreement" ? "" : asked.sort });
  };
  const sorts = [["", "as in the logs"], ["pot", "largest pots"]];
  if (asked.player) sorts.push(["won", "most won"]);
  if (asked.agent) sorts.push(["disagreement", "disagreement"]);
  const games = about.data.games;
  return el("div", { className: "controls" },
    games.length > 1 ? choice("Game", games.map((name) => [name, about.games.find((one) => one.name === name).title]), list.game, (game) => go(address("hands", { game }))) : null,
    choice("Player", everybody, asked.player ?? "", (player) => set({ player, agent: player ? asked.agent : "", sort: "" })),
    choice("Against", everybody, asked.opponent ?? "", (opponent) => set({ opponent })),
    choice("Reached", [["", "any street"], ["1", "the flop"], ["2", "the turn"], ["3", "the river"]], asked.street ?? "", (street) => set({ street })),
    field("Betting begins", "betting", { placeholder: "rc/cr", spellcheck: false }),
    field("Pot from", "least_pot", { type: "number", min: 0, inputMode: "numeric" }), field("to", "most_pot", { type: "number", min: 0, inputMode: "numeric" }),
    field("Starting hand", "start", { placeholder: "AKs", spellcheck: false, maxLength: 3 }),
    choice("Made hand", [["", "any"], ...about.data.made.map((name) => [name, name])], asked.made ?? "", (made) => set({ made })),
    choice("Where this agent differs", [["", "–"], ...agents], asked.agent ?? "", compare),
    choice("Sorted", sorts, asked.sort ?? "", (sort) => set({ sort })));
}

function table({ asked, go }) {
  const rows = list.rows.map((row) => {
    const open = here(asked, { hand: row.id, step: 0 });
    return el("tr", { className: "open", ariaCurrent: replayed?.id === row.id ? "true" : null, on: { click: (event) => { if (!event.target.closest("a")) go(open); } } },
      el("td", {}, el("a", { href: open, data: { focus: `hand-${row.id}` } }, `${row.number}`)), el("td", { className: "word" }, row.names.join(" – ")),
      el("td", { className: "word" }, row.hole.map((text) => card(text, "small"))), el("td", { className: "word" }, row.board.map((text) => card(text, "small"))),
      el("td", { className: "word betting" }, row.betting), el("td", {}, whole(row.pot)), el("td", {}, signed(row.won)),
      asked.agent ? el("td", {}, row.disagreement === null ? "–" : percent(row.disagreement)) : null);
  });
  const last = Math.min(list.found, list.from + list.rows.length);
  const said = list.reading ? ` Still reading: ${whole(list.reading.done)} of ${whole(list.reading.total)} hands so far.` : list.comparing ? ` Comparing with ${asked.agent}: ${list.comparing.total ? Math.floor((100 * list.comparing.done) / list.comparing.total) : 0} %.` : "";
  const page = (text, from, possible) => possible ? el("a", { className: "button quiet", href: here(asked, { from: from || "" }) }, text) : el("span", { className: "button quiet off", ariaHidden: "true" }, text);
  return el("section", {}, el("div", { className: "pages" }, el("p", { role: "status" }, `${whole(list.found)} of ${whole(list.hands)} hands`, list.rows.length ? `, ${whole(list.from + 1)} to ${whole(last)}` : "", `.${said}`),
    page("← Before", Math.max(0, list.from - 50), list.from > 0), page("More →", list.from + 50, last < list.found)),
    el("div", { className: "scroll tall", tabIndex: 0, role: "region", ariaLabel: "Hands" }, el("table", { className: "list" }, el("thead", {}, el("tr", {}, ["Hand", "Players", "Cards", "Board", "Betting", "Pot", asked.player ? "Won" : "Result"].map((text, i) => el("th", { scope: "col", className: i > 0 && i < 5 ? "word" : "" }, text)),
      asked.agent ? el("th", { scope: "col" }, "Disagreement") : null)), el("tbody", {}, rows))));
}

function replay(view) {
  const { asked, go, about } = view;
  const now = replayed.steps[step];
  const last = replayed.steps.length - 1;
  const over = step === last;
  const seats = now.seats.map((one) => hidden && !one.me && !(over && replayed.showdown && !one.folded) ? { ...one, cards: [], hidden: one.cards.length } : one);
  const notes = now.seats.map((one, i) => [hidden && !one.me ? "" : now.kinds[i], now.equities && !(hidden) && !one.folded ? percent(now.equities[i]) : ""].filter(Boolean).join(" · "));
  const to = (number, text, label) => el("a", { className: "button", href: here(asked, { hand: replayed.id, step: Math.max(0, Math.min(last, number)) }), ariaLabel: label, data: { focus: label } }, text);
  const game = about.games.find((one) => one.name === replayed.game);
  return el("section", { className: "replay" }, felt({ ...now, seats, slots: game.holdem ? 5 : now.board.length }, notes),
    el("div", { className: "buttons steps" }, to(0, "«", "first step"), to(step - 1, "←", "step back"), el("span", { className: "soft" }, `${step} of ${last}`), to(step + 1, "→", "step forward"), to(last, "»", "last step"),
      el("button", { type: "button", className: "quiet", ariaPressed: String(hidden), data: { focus: "hide" }, on: { click: () => { hidden = !hidden; draw(view); } } }, "Hide opponents’ cards")),
    el("p", { className: "over", role: "status" }, now.text), now.mixes.length ? mixes(now) : el("div"), el("p", { className: "said" }, "Arrow keys step; up and down go to the next hand."),
    now.mixes.length ? el("p", {}, now.mixes.slice(0, 1).map(({ agent }) => el("a", { href: address("strategy", { game: replayed.game, agent, betting: now.betting, board: now.board.join("") }) }, "Open this spot in the strategy view"))) : null,
    el("p", { className: "said" }, `${replayed.file}, line ${replayed.line}`), el("pre", { className: "logline" }, replayed.text));
}

function mixes(now) {
  const labels = now.labels.map((one) => one.text);
  return el("div", { className: "mixes" }, now.mixes.map(({ agent, mix }) => el("div", { data: { agent } }, el("div", { className: "said" }, el("b", {}, agent), `: ${mixWords(mix, labels, 1)}; what was done: ${percent(mix[now.taken])}`), mixBar(mix, labels))));
}
