// Names that no app can have: a kept list, with the source of each part.

/** What the platform itself answers on, now or later. */
const ownNames = `
  a2a admin api app apps assets auth docs gateway git login mail mcp models moorage registry static status t
  tools well-known www
`;

/**
 * What programs look up by its name alone and then trust: proxies (WPAD, ISATAP: RFC 5214), mail (autoconfig,
 * autodiscover, MTA-STS: RFC 8461, RFC 6186), keys (OpenPGP), calendars (RFC 6764), telephony and directories.
 */
const lookedUpNames = `
  acme acme-challenge autoconfig autodiscover bimi broadcasthost caldav carddav dkim dmarc domainkey
  enterpriseenrollment enterpriseregistration imaps isatap kerberos ldap ldaps localdomain localhost loopback
  lyncdiscover lyncdiscoverinternal msoid mta-sts ntp openpgpkey pop3 pop3s sip sipexternal sipinternal sips
  smtps submission time wpad
`;

/** Mailboxes and roles by which a domain is proved or addressed (RFC 2142, CA/Browser Forum), and where people log in. */
const trustedNames = `
  abuse account accounts admin auth0 bank banking console ftp helpdesk hostmaster id identity idp mailer-daemon
  mfa mx no-reply noc noreply ns password passwords postmaster proxy root saml secure security ssladmin
  ssladministrator sslwebmaster sso support trouble usenet verification verify vpn wallet webmaster
`;

/**
 * From The Big Username Blacklist 1.5.2 by Martin Sandström (MIT, https://github.com/marteinn/The-Big-Username-Blacklist):
 * its names of systems, accounts and law, without ordinary words that an app may well be called (chat, search, wiki).
 */
const listedNames = `
  about access ad administration administrator ads authentication authorize backup beta billing billings cdn
  checkout com config connect copyright db dev developer developers dns documentation domain download downloads
  email file files forgot forgot-password forgotpassword help home host hosting http httpd https imap info
  invitations invite invites invoice legal license licensing local logout lost-password mailerdaemon media
  metrics moderator net network oauth oauth2 openid partners passwd pay payment payments policies policy pop
  postfix poweruser preferences press privacy privacy-policy private prod production register registration
  request-password reset reset-password rootuser services session sessions settings setup signin signup smtp ssh
  ssl stage staging subscribe sudo super superuser sysadmin system terms terms-of-use webmail www-data
`;

/** Slugs that an app can never have. */
export const reservedSlugs: ReadonlySet<string> = new Set(
  [ownNames, lookedUpNames, trustedNames, listedNames].flatMap((names) => names.trim().split(/\s+/)),
);

/** The same names with a number, as servers have them; and labels that stand for other scripts (RFC 5891). */
export const reservedPattern = '^((dns|ftp|imap|mail|mx|ns|pop|smtp|vpn|web|www?)[0-9]+|[a-z0-9]{2}--.*)$';

const pattern = new RegExp(reservedPattern);

/** True for a name that no app can have. */
export function isReserved(name: string): boolean {
  return reservedSlugs.has(name) || pattern.test(name);
}
