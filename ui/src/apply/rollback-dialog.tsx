/** Shows what the rollback of an apply would change now, and starts it. */
import { useLocation } from 'wouter-preact';
import { usePlan } from '../api/plan.js';
import { invalidate } from '../api/query.js';
import { FormDialog } from '../base/dialog.js';
import { Skeleton } from '../base/notices.js';
import { PlanChanges, summaryOf } from './plan-view.js';
import { Refusal } from './refusal.js';
import { isOutOfDate, planRollback, startRollback } from './request.js';

interface RollbackDialogProps {
  readonly id: string;
  readonly onClose: () => void;
}

export function RollbackDialog({ id, onClose }: RollbackDialogProps) {
  const [, navigate] = useLocation();
  const { data, error, isLoading, refresh } = usePlan((signal) => planRollback(id, signal), id);
  const run = async () => {
    if (!data) return;
    try {
      const started = await startRollback(id, data.plan_hash);
      invalidate('/api/applies');
      navigate(`/ui/applies/${started}`);
    } catch (thrown) {
      if (isOutOfDate(thrown)) refresh();
      throw thrown;
    }
  };
  return (
    <FormDialog
      title="Roll back this apply?"
      action="Roll back"
      isWide
      isDangerous
      isDisabled={!data || isLoading || data.changes.length === 0}
      onClose={onClose}
      onSubmit={run}
    >
      {data ? (
        <>
          <p aria-live="polite">
            {summaryOf(data)}. Changes of others since then stay, unless what they are of is deleted.
          </p>
          <PlanChanges plan={data} />
        </>
      ) : error ? (
        <Refusal error={error} onRetry={refresh} />
      ) : (
        <Skeleton lines={4} />
      )}
    </FormDialog>
  );
}
