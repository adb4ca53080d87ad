/** The API reference. Nothing is asked of anybody but this server, and nothing of a reader is kept. */
declare const Scalar: {
  createApiReference(selector: string, options: Readonly<Record<string, unknown>>): unknown;
};

// Throws where the library did not arrive, and what the page says then stays.
const { createApiReference } = Scalar;
document.getElementById('reference')?.replaceChildren();
createApiReference('#reference', {
  url: 'openapi.json',
  agent: { disabled: true },
  defaultOpenAllTags: true,
  hideClientButton: true,
  mcp: { disabled: true },
  persistAuth: false,
  showDeveloperTools: 'never',
  telemetry: false,
  withDefaultFonts: false,
});
// Seen where a script was blocked or did not arrive.
document.getElementById('not-started')?.remove();
