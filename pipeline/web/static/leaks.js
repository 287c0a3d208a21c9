// The leaks view: the spots where a player of the dataset loses most, compared with a loaded agent.

import { address, ask, choice, el, legend, mixBar, percent, whole } from "/assets/dom.js";

export async function show(place, { about, query, go, current }) {
  const head = el("h1", { className: "hidden" }, "Leaks");
  if (!about.data) {
    place.replaceChildren(head, el("p", { className: "soft empty" }, "No dataset is loaded: start the server with --data DIR to see where a player of its logs loses."));
    return;
  }
  const leaks = await ask("leaks", { game: query.game, player: query.player, agent: query.agent });
  if (!current()) return;
  const set = (change) => go(address("leaks", { game: leaks.game, player: leaks.player, agent: leaks.agent, ...change }));
  const games = about.data.games;
  const agents = about.agents.filter((entry) => entry.games.includes(leaks.game)).map((entry) => [entry.name, entry.name]);
  const controls = el("div", { className: "controls" },
    games.length > 1 ? choice("Game", games.map((name) => [name, about.games.find((entry) => entry.name === name).title]), leaks.game, (game) => set({ game, agent: "" })) : null,
    choice("Player", about.data.players.map((name) => [name, name]), leaks.player, (player) => set({ player })),
    choice("Compared with", agents, leaks.agent, (agent) => set({ agent })));
  if (leaks.working) {
    const { title, done, total } = leaks.working;
    place.replaceChildren(head, controls, el("p", { className: "soft empty", role: "status" }, `${title} … ${total ? `${whole(done)} of ${whole(total)}` : ""}`));
    setTimeout(() => current() && location.pathname === "/leaks" && go(location.pathname + location.search, { replace: true }), 1000);
    return;
  }
  place.replaceChildren(head, controls, summary(leaks), leaks.spots.length ? legend(leaks.spots[0].words) : "", table(leaks));
}

const around = (value, half) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)} ± ${(half ?? 0).toFixed(1)}`;

function summary(leaks) {
  const more = leaks.difference_mbb_per_hand <= 0 ? "more" : "less";
  const total = `${Math.abs(leaks.difference_mbb_per_hand).toFixed(1)} ± ${(leaks.difference_ci95 ?? 0).toFixed(1)}`;
  return el("div", {},
    el("p", {}, el("b", {}, leaks.player), ` wins ${around(leaks.mbb_per_hand, leaks.ci95)} mbb a hand in ${whole(leaks.hands)} hands. With the choices of ${leaks.agent}, one at a time, it would win ${total} ${more}.`),
    el("p", { className: "said" }, `${leaks.certain} of ${leaks.listed} spots lose by more than chance (★).${leaks.left_out ? ` ${whole(leaks.left_out)} decisions are left out: their cards or results are not known.` : ""}`));
}

function table(leaks) {
  const titles = ["", "Spot", "Betting", "Decisions", "mbb a hand", `${leaks.player} / ${leaks.agent}`, "Untried", "Worst hands", "Replay"];
  const rows = leaks.spots.map((spot) => el("tr", {},
    el("td", {}, spot.certain ? el("span", { role: "img", ariaLabel: "more than chance" }, "★") : ""),
    el("td", { className: "word" }, `${spot.street}, ${spot.position}${spot.earlier_raises ? `, ${spot.earlier_raises} raise${spot.earlier_raises > 1 ? "s" : ""} before` : ""}`),
    el("td", { className: "word betting" }, spot.betting === "-" ? "first to act" : spot.betting),
    el("td", {}, whole(spot.decisions)),
    el("td", {}, around(spot.difference_mbb_per_hand, spot.difference_ci95)),
    el("td", { className: "word" }, spot.mixes.map((mix) => mixBar(mix, spot.words))),
    el("td", {}, percent(spot.untried, 0)),
    el("td", { className: "word" }, spot.groups[0].hands),
    el("td", { className: "word" }, spot.examples.map((id, i) => [i ? " " : "", el("a", { href: address("hands", { game: leaks.game, player: leaks.player, hand: id, step: 0 }) }, `hand ${i + 1}`)]))));
  return el("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Leaks" },
    el("table", { className: "list leaks" }, el("thead", {}, el("tr", {}, titles.map((text, i) => el("th", { scope: "col", className: [1, 2, 5, 7, 8].includes(i) ? "word" : "" }, text)))), el("tbody", {}, rows)));
}
