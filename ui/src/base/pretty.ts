/** JSON on several lines; anything else as it is. Numbers that JavaScript would change stay as they were sent. */
export function pretty(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    const printed = JSON.stringify(value, null, 2);
    const digits = (json: string) => json.replace(/\s/g, '');
    return typeof value === 'object' && digits(printed) === digits(text) ? printed : text;
  } catch {
    return text;
  }
}
