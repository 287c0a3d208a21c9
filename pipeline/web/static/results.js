// The results view: the report of the loaded agents, in a frame as high as its content.

import { ask, choice, complain, el } from "/assets/dom.js";

export async function show(place, { about, query, go, current }) {
  const games = about.data?.games ?? [];
  const game = query.game ?? games[0] ?? "";
  const found = await ask("results", { game });
  if (!current()) return;
  const picks = games.length > 1 ? el("div", { className: "controls" }, choice("Game", games.map((name) => [name, about.games.find((one) => one.name === name)?.title ?? name]), game, (value) => go(`/results?game=${encodeURIComponent(value)}`))) : null;
  const head = el("h1", { className: "hidden" }, "Results");
  if (found.state === "nothing") {
    place.replaceChildren(head, el("p", { className: "soft empty" }, "There is nothing to show yet: start the server with --data DIR to score the agents on the decisions of a dataset, or with --match FILE and --table FILE to show matches and tournaments that were saved."));
  } else if (found.state === "failed") {
    place.replaceChildren(head, ...[picks].filter(Boolean), el("p", { className: "empty" }, found.error));
  } else if (found.state === "ready") {
    place.replaceChildren(head, ...[picks].filter(Boolean), frame(game));
  } else {
    place.replaceChildren(head, el("p", { className: "soft empty", role: "status" }, `${found.title} … ${found.total ? `${found.done} of ${found.total}` : ""}`));
    setTimeout(() => current() && location.pathname === "/results" && go(location.pathname + location.search, { replace: true }), 1000);
  }
}

function frame(game) {
  const made = el("iframe", { className: "report", title: "Report", src: `/report?game=${encodeURIComponent(game)}` });
  const fit = () => { made.style.height = `${made.contentDocument.documentElement.scrollHeight + 8}px`; };
  made.addEventListener("load", () => {
    if (!made.contentDocument) return complain("the report could not be shown");
    fit();
    new ResizeObserver(fit).observe(made.contentDocument.body);
  });
  return made;
}
