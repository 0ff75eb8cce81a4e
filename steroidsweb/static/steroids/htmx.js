// htmx as the Content-Security-Policy lets it work: no <style> of its own, no scripts in what it fetches, and
// from this host only.
Object.assign(htmx.config, {
    includeIndicatorStyles: false,
    allowEval: false,
    allowScriptTags: false,
    selfRequestsOnly: true,
});
