// The strategy view: the grid of starting hands at a spot of the betting, and ways to go on from there.

import { address, ask, card, choice, el, legend, mixBar, mixWords, percent, splitCards, stripes, whole } from "/assets/dom.js";

const SUITS = "cdhs";
let opened = null; // the number of the cell that is open
let shown = "mix"; // mix, difference or source: what the second grid is

export async function show(place, { about, query, go, current }) {
  const game = about.games.find((one) => one.name === query.game) ?? about.games[0];
  const agents = about.agents.filter((one) => one.games.includes(game.name));
  const asked = { game: game.name, agent: query.agent ?? agents[0].name, betting: query.betting, board: query.board,
    other: query.other, source: query.source };
  const spot = await ask("spot", asked);
  if (!current()) return;
  const view = { about, game, agents, asked, spot, go, place };
  draw(view);
  if (spot.source?.reading) setTimeout(() => current() && go(here(asked), { replace: true }), 800);
}

const here = (asked, change = {}) => address("strategy", { ...asked, ...change });

function draw(view) {
  const { place, spot, asked } = view;
  const ready = Boolean(spot.cells);
  const focus = document.activeElement?.dataset?.cell ?? null;
  const left = el("div", { className: "grids" }, ready ? grids(view) : el("p", { className: "soft empty" },
    spot.finished ? "The hand is over here. Go back one step to look at another action." : "Choose the board to see what the agent does."));
  const right = el("div", { className: "side" }, actionTable(view), ready ? [details(view), groups(view)] : null);
  place.replaceChildren(
    el("h1", { className: "hidden" }, "Strategy"),
    controls(view), trail(view), board(view),
    el("div", { className: "columns" }, left, right));
  if (focus !== null) place.querySelector(`[data-cell="${focus}"]`)?.focus();
}

function controls({ about, game, agents, asked, go }) {
  const games = about.games.map((one) => [one.name, one.title]);
  const names = agents.map((one) => [one.name, one.name]);
  const others = [["", "nobody"], ...names.filter(([name]) => name !== asked.agent)];
  const fields = [];
  if (games.length > 1) fields.push(choice("Game", games, game.name, (value) => go(address("strategy", { game: value }))));
  fields.push(choice("Agent", names, asked.agent, (agent) => go(here(asked, { agent, other: agent === asked.other ? "" : asked.other }))));
  fields.push(choice("Compare with", others, asked.other ?? "", (other) => go(here(asked, { other }))));
  if (about.data) {
    const players = [["", "nobody"], ...about.data.players.map((name) => [name, name])];
    fields.push(choice("Count in the logs", players, asked.source ?? "", (source) => go(here(asked, { source }))));
  }
  return el("div", { className: "controls" }, fields);
}

/** The way here: every step goes back to before it. */
function trail({ spot, asked }) {
  const items = [el("li", {}, el("a", { href: here(asked, { betting: "", board: "" }) }, "Start"))];
  let street = null;
  spot.path.forEach((step, i) => {
    if (step.street !== street) items.push(el("li", { className: "street" }, step.street));
    street = step.street;
    const next = spot.path[i + 1]?.betting ?? spot.betting;
    const last = i === spot.path.length - 1;
    items.push(el("li", {}, el("a", { href: here(asked, { betting: next }), title: "go back to after this", ariaCurrent: last ? "step" : null }, step.text)));
  });
  if (spot.street !== street && spot.path.length && !spot.finished) items.push(el("li", { className: "street" }, spot.street));
  const back = spot.path.length ? el("a", { className: "button quiet", href: here(asked, { betting: spot.path.at(-1).betting }) }, "← Back") : null;
  return el("nav", { className: "trail", ariaLabel: "Betting so far" }, el("ol", {}, items), back);
}

function board(view) {
  const { spot, game, asked, go } = view;
  if (!spot.board_cards) return el("p", { className: "board soft" }, "No cards on the board yet.");
  const slots = [];
  const picker = el("div", { className: "picker", hidden: true });
  for (let i = 0; i < spot.board_cards; i++) {
    const text = spot.board[i];
    slots.push(el("button", { type: "button", className: "slot", ariaLabel: text ? `change board card ${i + 1}` : `choose board card ${i + 1}`,
      on: { click: () => pick(picker, view, i) } }, card(text)));
  }
  const again = el("button", { type: "button", className: "quiet", on: { click: () => go(here(asked, { board: dealt(game, spot.board_cards, "") })) } }, "Deal another board");
  if (spot.missing_cards) queueMicrotask(() => pick(picker, view, spot.board.length));
  return el("div", { className: "board" }, el("span", { className: "soft" }, "Board"), slots, again, picker);
}

/** Cards drawn at random for a board that begins with `text`. */
function dealt(game, count, text) {
  const cards = splitCards(text).slice(0, count);
  const left = game.deck.filter((one) => !cards.includes(one));
  while (cards.length < count) cards.push(left.splice(Math.floor(Math.random() * left.length), 1)[0]);
  return cards.join("");
}

function pick(picker, { game, spot, asked, go }, slot) {
  const rows = SUITS.split("").map((suit) => el("div", {}, game.deck.filter((one) => one[1] === suit).reverse().map((one) => {
    const taken = spot.board.includes(one);
    return el("button", { type: "button", disabled: taken, on: { click: () => {
      const cards = [...spot.board];
      cards[slot] = one;
      go(here(asked, { board: cards.join("") }));
    } } }, card(one));
  })));
  const close = el("button", { type: "button", className: "quiet", on: { click: () => { picker.hidden = true; } } }, "Close");
  picker.replaceChildren(el("p", {}, `Card ${slot + 1} of the board`), ...rows, close);
  picker.hidden = false;
  picker.querySelector("button:enabled")?.focus();
}

function grids(view) {
  const { spot, asked } = view;
  const labels = spot.labels.map((one) => one.text);
  const title = `${spot.agent} · ${spot.street}, ${spot.position} to act`;
  const made = [el("figure", {}, el("figcaption", {}, el("b", {}, title), ` · ${whole(spot.combos)} of ${whole(spot.possible)} hands get here`), grid(view, spot.cells, labels, title))];
  const counted = spot.source && !spot.source.reading;
  const kinds = [];
  if (spot.other) kinds.push(["mix", spot.other.agent], ["difference", "difference"]);
  if (counted) kinds.push(["source", `${asked.source} in the logs`]);
  if (kinds.length) {
    if (!kinds.some(([kind]) => kind === shown)) shown = kinds[0][0];
    const tabs = el("div", { className: "tabs", role: "group", ariaLabel: "Second grid" }, kinds.map(([kind, text]) =>
      el("button", { type: "button", ariaPressed: String(kind === shown), on: { click: () => { shown = kind; draw(view); } } }, text)));
    made.push(el("figure", {}, el("figcaption", {}, tabs), second(view, labels)));
  }
  const said = [legend(labels)];
  if (spot.other) {
    const mean = spot.other.difference.mean;
    said.push(el("p", { className: "said" }, mean === null ? `${spot.agent} never gets here.`
      : `${spot.agent} and ${spot.other.agent} are ${percent(mean)} apart here (total variation, weighted by what ${spot.agent} holds).`));
  }
  if (spot.source?.reading) said.push(el("p", { className: "said" }, `Reading the decisions of ${spot.source.player} …`));
  if (counted) said.push(sourceWords(spot.source, labels));
  return [el("div", { className: made.length > 1 ? "pair" : "one" }, made), ...said];
}

function sourceWords({ player, counts, this_board }, labels) {
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  const total = sum(counts);
  if (!total) return el("p", { className: "said" }, `${player} was never in this spot.`);
  const mix = counts.map((count) => count / total);
  const same = sum(this_board);
  const exactly = same && same < total ? `, ${whole(same)} of them on this very board` : "";
  return el("div", { className: "said" }, `${player} was here ${whole(total)} times${exactly}: ${mixWords(mix, labels, 1)}.`, mixBar(mix, labels));
}

function second(view, labels) {
  const { spot } = view;
  if (shown === "mix") return grid(view, spot.other.cells, labels, `${spot.other.agent}, the same spot`);
  if (shown === "source") {
    const total = (row) => row.reduce((a, b) => a + b, 0);
    const rows = spot.source.cells;
    const most = Math.max(1, ...rows.map(total));
    const cells = { names: spot.cells.names, hands: rows.map(total), combos: rows.map(total), mix: rows.map((row) => row.map((count) => count / Math.max(1, total(row)))),
      reach: rows.map((row) => Math.min(1, Math.sqrt(total(row) / most))) };
    return grid(view, cells, labels, `${spot.source.player} in the logs`, (i) => `${cells.names[i]}: ${cells.hands[i] ? `${mixWords(cells.mix[i], labels)} (${whole(cells.hands[i])} seen)` : "never seen"}`);
  }
  const apart = spot.other.difference.cells;
  const cells = { ...spot.cells, mix: apart.map((value) => [0, 0, value]), reach: apart.map(() => 1) };
  return grid(view, cells, labels, "difference", (i) => `${cells.names[i]}: ${percent(apart[i])} apart`, (i) => String(Math.round(100 * apart[i])));
}

/** The grid: arrow keys move, Enter opens a cell. */
function grid(view, cells, labels, title, words = null, below = null) {
  const { spot } = view;
  const columns = spot.columns;
  const say = words ?? ((i) => `${cells.names[i]}: ${cells.hands[i] ? `${mixWords(cells.mix[i], labels)}; reach ${percent(cells.reach[i], 0)}` : "not possible on this board"}`);
  const buttons = cells.names.map((name, i) => {
    const live = cells.hands[i] > 0;
    const button = el("button", { type: "button", className: live ? "cell" : "cell dead", title: say(i), ariaLabel: say(i),
      tabIndex: i === (opened ?? 0) ? 0 : -1, ariaPressed: String(i === opened), data: { cell: i },
      on: { click: () => { opened = opened === i ? null : i; draw(view); } } }, el("span", {}, name), below ? el("small", {}, below(i)) : null);
    button.style.setProperty("--mix", stripes(cells.mix[i]));
    button.style.setProperty("--reach", cells.reach[i] > 0 ? Math.max(0.06, cells.reach[i]).toFixed(3) : "0");
    return button;
  });
  const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
  const keys = (event) => {
    const at = Number(event.target.dataset?.cell);
    if (!(event.key in move) || Number.isNaN(at)) return;
    event.preventDefault();
    const next = buttons[at + move[event.key]];
    if (!next) return;
    buttons[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
  return el("div", { className: "range", role: "group", ariaLabel: title, set: { "--columns": columns }, on: { keydown: keys } }, buttons);
}

/** The actions with frequency and combos; each goes deeper. */
function actionTable({ spot, game, asked, go }) {
  if (spot.finished) return null;
  const head = el("p", {}, el("b", {}, `${spot.position} to act`), `, pot ${whole(spot.pot)}${spot.to_call ? `, ${whole(spot.to_call)} to call` : ""}`);
  const rows = spot.actions.map((action) => {
    const share = spot.frequency?.[action.number];
    const other = spot.other?.frequency?.[action.number];
    const label = el("span", {}, el("i", { className: `dot b${action.number}` }), action.text);
    const next = action.ends ? el("span", { className: "ends" }, label)
      : el("a", { className: "button", href: here(asked, { betting: action.betting, board: dealt(game, action.cards, asked.board) }), data: { action: action.label } }, label);
    return el("tr", {}, el("td", {}, next), el("td", {}, share == null ? "–" : percent(share)), el("td", {}, share == null ? "–" : (share * spot.combos).toFixed(1)),
      spot.other ? el("td", {}, other == null ? "–" : percent(other)) : null);
  });
  return el("section", {}, head, el("div", { className: "scroll" }, el("table", { className: "actions" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Action"), el("th", { scope: "col" }, "Frequency"), el("th", { scope: "col" }, "Combos"),
      spot.other ? el("th", { scope: "col" }, spot.other.agent) : null)),
    el("tbody", {}, rows))), game.nolimit ? amount(spot, asked, go) : null);
}

/** No-limit: a bet of any size. */
function amount(spot, asked, go) {
  const raises = spot.actions.filter((action) => action.action === "r");
  if (!raises.length) return null;
  const input = el("input", { type: "number", min: 1, required: true, inputMode: "numeric", placeholder: String(raises[0].amount) });
  const submit = async (event) => {
    event.preventDefault();
    const found = await ask("amount", { game: asked.game, betting: spot.betting, amount: input.value });
    go(here(asked, { betting: found.betting }));
  };
  return el("form", { className: "amount", on: { submit } },
    el("label", { className: "field" }, el("span", {}, raises[0].bet ? "Bet any amount" : "Raise to any amount"), input), el("button", { type: "submit" }, "Go"));
}

/** The open cell's hands, suit by suit. */
function details(view) {
  const { spot } = view;
  const labels = spot.labels.map((one) => one.text);
  if (opened === null || !spot.cells.names[opened]) return el("p", { className: "said" }, "Click a cell of the grid to see its suits.");
  const rows = [];
  spot.hands.cell.forEach((cell, i) => {
    if (cell !== opened) return;
    const made = spot.groups ? kindOf(spot, i) : "";
    rows.push(el("tr", { className: spot.hands.reach[i] < 0.01 ? "rare" : "" }, el("td", {}, splitCards(spot.hands.cards[i]).map((one) => card(one, "small"))),
      el("td", { className: "wide" }, mixBar(spot.hands.mix[i], labels)),
      spot.other ? el("td", { className: "wide" }, mixBar(spot.other.hands.mix[i], labels)) : null,
      el("td", {}, percent(spot.hands.reach[i], 0)), made ? el("td", { className: "word" }, made) : null));
  });
  if (!rows.length) return el("p", { className: "said" }, `${spot.cells.names[opened]} is not possible on this board.`);
  return el("section", {}, el("h2", {}, spot.cells.names[opened]), el("div", { className: "scroll" }, el("table", { className: "suits" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Hand"), el("th", { scope: "col" }, spot.agent), spot.other ? el("th", { scope: "col" }, spot.other.agent) : null,
      el("th", { scope: "col" }, "Reach"), spot.groups ? el("th", { scope: "col", className: "word" }, "Made hand") : null)),
    el("tbody", {}, rows))));
}

function kindOf(spot, i) {
  const made = spot.groups.made.find((group) => group.group === spot.hands.made[i])?.name ?? "";
  const draw = spot.groups.draws.find((group) => group.group === spot.hands.draw[i])?.name ?? "no draw";
  return draw === "no draw" ? made : `${made}, ${draw}`;
}

/** The range by made hand and by draw. */
function groups({ spot }) {
  if (!spot.groups) return null;
  const labels = spot.labels.map((one) => one.text);
  const table = (title, rows, others, counted) => rows.length ? el("section", {}, el("h2", {}, title), el("div", { className: "scroll" }, el("table", { className: "groups" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Kind"), el("th", { scope: "col" }, "Combos"), el("th", { scope: "col" }, "Share"), el("th", { scope: "col" }, spot.agent),
      others ? el("th", { scope: "col" }, spot.other.agent) : null, counted ? el("th", { scope: "col" }, `${spot.source.player}, logs`) : null)),
    el("tbody", {}, rows.map((row) => {
      const other = others?.find((one) => one.group === row.group);
      const seen = counted?.[row.group] ?? null;
      const sum = seen?.reduce((a, b) => a + b, 0);
      return el("tr", { className: row.combos < 0.01 ? "rare" : "" }, el("td", {}, row.name), el("td", {}, row.combos.toFixed(1)), el("td", {}, percent(row.share)),
        el("td", { className: "wide" }, mixBar(row.mix, labels)), others ? el("td", { className: "wide" }, other ? mixBar(other.mix, labels) : "–") : null,
        counted ? el("td", { className: "wide" }, sum ? [mixBar(seen.map((count) => count / sum), labels)] : "–") : null);
    }))))) : null;
  const counted = spot.source && !spot.source.reading ? spot.source.made : null;
  return [table("By made hand", spot.groups.made, spot.other?.groups?.made, counted), table("By draw", spot.groups.draws, spot.other?.groups?.draws, null)];
}
