/** The settings that tests and their mail server share. */
export interface SmtpSettings {
  readonly port: number;
  readonly encryption: 'none' | 'starttls' | 'tls';
  /** PEM files. */
  readonly key?: string;
  readonly cert?: string;
  readonly username?: string;
  /** Without one there is no login. */
  readonly password?: string;
  /** Where mails go. */
  readonly folder: string;
}

/** A mail, as the server took it. */
export interface ReceivedMail {
  readonly secure: boolean;
  readonly user: string | null;
  readonly from: string | null;
  readonly to: readonly string[];
  /** Its bytes, one per character. */
  readonly raw: string;
}

export const refusedSender = 'refused-sender@example.com';
export const refusedRecipient = 'refused@example.com';
export const tooBusyRecipient = 'busy@example.com';
