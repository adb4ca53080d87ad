-- An XMPP server for one domain inside of the stack's network: no TLS and no other servers. Before it is opened to people outside,
-- give it a certificate and c2s_require_encryption = true.
local domain = ENV_XMPP_DOMAIN or "chat.example"

daemonize = false
log = { { levels = { min = "info" }, to = "console" } }
data_path = "/var/lib/prosody"
interfaces = { "*" }
s2s_ports = {}
component_ports = {}
modules_disabled = { "s2s" }
modules_enabled = {
  "roster"; "saslauth"; "disco"; "ping"; "smacks"; "carbons"; "mam"; "blocklist"; "pep"; "bookmarks"; "vcard_legacy"; "offline"; "http";
}
authentication = "internal_hashed"
c2s_require_encryption = false
archive_expires_after = "never"

http_ports = { 5280 }
https_ports = {}
http_interfaces = { "*" }
-- Without the two an upload's PUT is answered 404: the component is found by the request's Host.
http_default_host = "share." .. domain
http_external_url = ENV_XMPP_UPLOAD_URL or "http://prosody:5280/"

VirtualHost(domain)

Component("rooms." .. domain)("muc")
  modules_enabled = { "muc_mam" }

Component("share." .. domain)("http_file_share")
  http_file_share_access = { domain }
