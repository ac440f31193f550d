-- Nothing to do here: a number that is kept free.
SELECT 1;
